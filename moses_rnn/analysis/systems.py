"""The systems that the pipeline builds: the rows of moses_configs/systems, which pipeline.mk reads too."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from moses_rnn.errors import FormatError
from moses_rnn.files.shipped import shipped_file

COLUMNS = ("name", "kind", "base", "added", "decoder", "title")
KINDS = ("table", "list", "extended", "self")


@dataclass(frozen=True)
class System:
    """A row.

    Attributes:
        name: of the targets of make and of the files.
        kind: "table" if columns of the phrase table are added, "list" if features of n-best lists are, "extended" if
            the table gets new phrase pairs for each text, "self" if a network translates by itself, without Moses.
        title: in tables of results.
    """

    name: str
    kind: str
    title: str


def read_systems(path: Path | None = None) -> dict[str, System]:
    """All systems by name, in the order of the file, which is the pipeline's if none is given.

    Args:
        path: of the file.

    Raises:
        FormatError: a row has too few or too many columns, or an unknown kind.
    """
    path = path or shipped_file("systems")
    lines = enumerate(path.read_text(encoding="utf-8").split("\n"), 1)
    rows = [_parse(line.split(), path, number) for number, line in lines if line.strip() and not line.startswith("#")]
    return {system.name: system for system in rows}


def _parse(cells: list[str], path: Path, number: int) -> System:
    if len(cells) != len(COLUMNS):
        raise FormatError(str(path), number, f"{len(COLUMNS)} columns ({' '.join(COLUMNS)})", str(len(cells)))
    row = dict(zip(COLUMNS, cells, strict=True))
    if row["kind"] not in KINDS:
        raise FormatError(str(path), number, f"kind to be one of {', '.join(KINDS)}", row["kind"])
    return System(row["name"], row["kind"], row["title"])
