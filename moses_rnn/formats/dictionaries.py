"""Moses's types of phrase dictionaries, and what makes each of them from a text table."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from moses_rnn.formats.phrase_table import DIRECT_COLUMN
from moses_rnn.formats.streams import without_compression_suffix

# Types whose path is a text table; the others need a binariser, so a new text table cannot take their place.
TEXT_TYPES = frozenset({"PhraseDictionaryMemory", "RuleTable", "PhraseDictionarySCFG"})
STORED_TARGETS = 100  # of a source in an on-disk dictionary, as EMS has it


@dataclass(frozen=True)
class Binary:
    """A type that a program makes from a text table.

    `suffix` stands behind the table's stem in ``path=``; `appended` is what of it the program puts there itself. In
    `command`, ``{table}``, ``{columns}``, ``{factors}``, ``{out}`` and ``{rank}`` (the score that targets are ranked
    by, p(target | source) if there are enough) are to be filled in.
    """

    name: str  # for a user
    suffix: str
    appended: str
    command: str

    def path_for(self, table: str) -> str:
        """Where the dictionary of a text table goes by default: beside it."""
        return str(without_compression_suffix(table)) + self.suffix

    def command_for(self, table: str, columns: int, path: str, factors: tuple[int, int] = (1, 1)) -> str:
        """The shell command that makes it, with the numbers of scores and of factors that the table has."""
        out = shlex.quote(path.removesuffix(self.appended))
        rank = DIRECT_COLUMN if columns > DIRECT_COLUMN else 0
        counts = {"columns": columns, "rank": rank, "factors": " ".join(map(str, factors))}
        return self.command.format(table=shlex.quote(table), out=out, **counts)


# Without the number of scores, the first stops; the others write rubbish, which the decoder dies of or reads as zeros.
BINARY = {
    "PhraseDictionaryCompact": Binary(
        "compact",
        ".minphr",
        ".minphr",
        "$MOSES_ROOT/bin/processPhraseTableMin -nscores {columns} -rankscore {rank} -in {table} -out {out}",
    ),
    "ProbingPT": Binary(
        "probing",
        ".probing",
        "",
        "$MOSES_ROOT/bin/CreateProbingPT --num-scores {columns} --input-pt {table} --output-dir {out}",
    ),
    "PhraseDictionaryOnDisk": Binary(
        "on-disk",
        ".ondisk",
        "",
        f"$MOSES_ROOT/bin/CreateOnDiskPt {{factors}} {{columns}} {STORED_TARGETS} {{rank}} {{table}} {{out}}",
    ),
}
DICTIONARY_TYPES = (
    TEXT_TYPES
    | BINARY.keys()
    | {
        "PhraseDictionaryBinary",
        "PhraseDictionaryALSuffixArray",
        "PhraseDictionaryScope3",
        "PhraseDictionaryMultiModel",
        "PhraseDictionaryMultiModelCounts",
        "PhraseDictionaryGroup",
        "Mmsapt",
        "PhraseDictionaryBitextSampling",
    }
)


def binariser_commands(table: str, columns: int) -> Iterator[str]:
    """For each type that is made from a text table, the shell command that makes it."""
    for binary in BINARY.values():
        yield binary.command_for(table, columns, binary.path_for(table))
