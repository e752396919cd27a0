"""Moses's types of phrase dictionaries, and the commands that make them from a text table."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from moses_rnn.files.streams import without_compression_suffix
from moses_rnn.table.phrase_table import DIRECT_COLUMN, Shape

# Types that load a text table directly; the others need a binariser, so a new text table cannot replace them.
TEXT_TYPES = frozenset({"PhraseDictionaryMemory", "RuleTable", "PhraseDictionarySCFG"})
STORED_TARGETS = 1_000_000  # per source in an on-disk dictionary: all, as in the other types


@dataclass(frozen=True)
class Binary:
    """A type that a program makes from a text table.

    `suffix` follows the table's stem in ``path=``. In `command`, ``{table}``, ``{columns}``, ``{factors}``,
    ``{out}``, ``{most}`` (targets of a source), ``{rank}`` (the score that ranks targets, p(target | source): the
    third, or the second of tables without lexical scores) and ``{unaligned}`` (an option for tables without alignments)
    are filled in.
    """

    suffix: str
    command: str
    holds_rules: bool = False  # CreateProbingPT --scfg crashes on train-model.perl's

    @property
    def program(self) -> str:
        """Name of the program."""
        return self.command.split(" ")[0].rpartition("/")[2]

    def path_for(self, table: str) -> str:
        """Return the default path of a text table's dictionary: beside it."""
        return str(without_compression_suffix(table)) + self.suffix

    def command_for(self, table: str, shape: Shape, path: str, own: int) -> str:
        """Return the shell command that makes the dictionary at `path`.

        The first `own` scores are those of phrase-extract; further ones were added.
        """
        return self.command.format(
            table=shlex.quote(table),
            out=shlex.quote(path),
            columns=shape.columns,
            factors=" ".join(map(str, shape.factors)),
            most=STORED_TARGETS,
            rank=DIRECT_COLUMN if own > DIRECT_COLUMN + 1 else min(1, own - 1),
            unaligned="" if shape.aligned else " -encoding None",
        )


# Without the number of scores, the first stops; the others write rubbish, which the decoder dies of or reads as zeros.
# The first one is given the whole name: it would not put its suffix behind one of six letters.
BINARY = {
    "PhraseDictionaryCompact": Binary(
        ".minphr",
        "$MOSES_ROOT/bin/processPhraseTableMin -nscores {columns} -rankscore {rank}{unaligned} -in {table} -out {out}",
    ),
    "ProbingPT": Binary(
        ".probing", "$MOSES_ROOT/bin/CreateProbingPT --num-scores {columns} --input-pt {table} --output-dir {out}"
    ),
    "PhraseDictionaryOnDisk": Binary(
        ".ondisk", "$MOSES_ROOT/bin/CreateOnDiskPt {factors} {columns} {most} {rank} {table} {out}", holds_rules=True
    ),
}
LOADABLE = TEXT_TYPES | BINARY.keys()  # types that load a text table or can be made from one
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

KINDS = {  # kinds that can be verified: the type in an ini, and the decoder that loads it
    "text": ("PhraseDictionaryMemory", "moses"),
    "compact": ("PhraseDictionaryCompact", "moses"),
    "on-disk": ("PhraseDictionaryOnDisk", "moses"),
    "probing": ("ProbingPT", "moses"),
    "moses2": ("ProbingPT", "moses2"),
}
