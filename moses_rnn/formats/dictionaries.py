"""Moses's types of phrase dictionaries, and what makes each of them from a text table."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass

from moses_rnn.files.streams import without_compression_suffix
from moses_rnn.formats.phrase_forms import words
from moses_rnn.formats.phrase_table import DIRECT_COLUMN, TableLine

# Types whose path is a text table; the others need a binariser, so a new text table cannot take their place.
TEXT_TYPES = frozenset({"PhraseDictionaryMemory", "RuleTable", "PhraseDictionarySCFG"})
STORED_TARGETS = 100  # of a source in an on-disk dictionary, as EMS has it


@dataclass(frozen=True)
class Shape:
    """What a binariser must know of a table.

    How many scores it has, how many factors source and target words have, and whether lines have alignments.
    """

    columns: int
    factors: tuple[int, int] = (1, 1)
    aligned: bool = True

    @classmethod
    def of(cls, line: TableLine) -> Shape:
        """As a table's first line shows it."""
        factors = [words(phrase)[0].count(b"|") + 1 if phrase else 1 for phrase in (line.source, line.target)]
        return cls(len(words(line.scores)), (factors[0], factors[1]), bool(line.alignment))


@dataclass(frozen=True)
class Binary:
    """A type that a program makes from a text table.

    `suffix` stands behind the table's stem in ``path=``. In `command`, ``{table}``, ``{columns}``, ``{factors}``,
    ``{out}``, ``{most}`` (targets of a source), ``{rank}`` (the score that ranks targets, p(target | source): the
    third, or the second of tables without lexical scores) and ``{unaligned}`` are filled in.
    """

    suffix: str
    command: str
    unaligned: str = ""  # option for a table without alignments

    @property
    def program(self) -> str:
        """The name of the program that makes it."""
        return self.command.split(" ")[0].rpartition("/")[2]

    def path_for(self, table: str) -> str:
        """Where the dictionary of a text table goes by default: beside it."""
        return str(without_compression_suffix(table)) + self.suffix

    def command_for(self, table: str, shape: Shape, path: str, most: int = STORED_TARGETS) -> str:
        """The shell command that makes it at `path`."""
        return self.command.format(
            table=shlex.quote(table),
            out=shlex.quote(path),
            columns=shape.columns,
            factors=" ".join(map(str, shape.factors)),
            most=most,
            rank=DIRECT_COLUMN if shape.columns > DIRECT_COLUMN + 1 else min(1, shape.columns - 1),
            unaligned="" if shape.aligned else self.unaligned,
        )


# Without the number of scores, the first stops; the others write rubbish, which the decoder dies of or reads as zeros.
# The first one is given the whole name: it would not put its suffix behind one of six letters.
BINARY = {
    "PhraseDictionaryCompact": Binary(
        ".minphr",
        "$MOSES_ROOT/bin/processPhraseTableMin -nscores {columns} -rankscore {rank}{unaligned} -in {table} -out {out}",
        " -encoding None",
    ),
    "ProbingPT": Binary(
        ".probing",
        "$MOSES_ROOT/bin/CreateProbingPT --num-scores {columns} --input-pt {table} --output-dir {out}",
    ),
    "PhraseDictionaryOnDisk": Binary(
        ".ondisk", "$MOSES_ROOT/bin/CreateOnDiskPt {factors} {columns} {most} {rank} {table} {out}"
    ),
}
LOADABLE = TEXT_TYPES | BINARY.keys()  # what a text table can be loaded as, or made into
DICTIONARY_TYPES = LOADABLE | {
    "PhraseDictionaryBinary",
    "PhraseDictionaryALSuffixArray",
    "PhraseDictionaryScope3",
    "PhraseDictionaryMultiModel",
    "PhraseDictionaryMultiModelCounts",
    "PhraseDictionaryGroup",
    "Mmsapt",
    "PhraseDictionaryBitextSampling",
}


def factor_list(count: int) -> str:
    """``0,1`` for two factors, as an ini names them."""
    return ",".join(map(str, range(count)))


def listed(types: Iterable[str]) -> str:
    """Types, for a message."""
    return ", ".join(sorted(types))
