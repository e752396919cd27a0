"""The systems that the pipeline builds: the rows of moses_configs/systems, which pipeline.mk reads too."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from moses_rnn.errors import FormatError
from moses_rnn.files.shipped import shipped_file

COLUMNS = ("name", "kind", "base", "added", "decoder", "title", "published")
KINDS = ("table", "list", "self")
NOTHING = "-"

CHO_2014 = "Cho et al. (2014), arXiv:1406.1078v3, Table 1: WMT'14 English–French"


class PublishedBleu(NamedTuple):
    """BLEU of a system on a paper's development and test set, 0 to 100."""

    dev: float
    test: float
    source: str


# by the column `published`: beside our figures, and never mixed with them
PUBLISHED = {
    "baseline": PublishedBleu(30.64, 33.30, CHO_2014),
    "rnn": PublishedBleu(31.20, 33.87, CHO_2014),
    "cslm-rnn": PublishedBleu(31.48, 34.64, CHO_2014),
    "cslm-rnn-wp": PublishedBleu(31.50, 34.54, CHO_2014),
}


@dataclass(frozen=True)
class System:
    """A row.

    Attributes:
        name: of the targets of make and of the files.
        kind: "table" if columns of the phrase table are added, "list" if features of n-best lists are, "self" if a
            network translates by itself, without Moses.
        title: in tables of results.
        published: what a paper reports of the same system.
    """

    name: str
    kind: str
    title: str
    published: PublishedBleu | None = None


def read_systems(path: Path | None = None) -> dict[str, System]:
    """All systems by name, in the order of the file, which is the pipeline's if none is given.

    Raises:
        FormatError: a row has too few or too many columns, an unknown kind, or names a published row that does not
            exist.
    """
    path = path or shipped_file("systems")
    lines = enumerate(path.read_text(encoding="utf-8").split("\n"), 1)
    rows = [_parse(line.split(), path, number) for number, line in lines if line.strip() and not line.startswith("#")]
    return {system.name: system for system in rows}


def _parse(cells: list[str], path: Path, number: int) -> System:
    if len(cells) != len(COLUMNS):
        raise FormatError(str(path), number, f"{len(COLUMNS)} columns ({' '.join(COLUMNS)})", str(len(cells)))
    row = dict(zip(COLUMNS, cells, strict=True))
    for column, known in (("kind", KINDS), ("published", (NOTHING, *PUBLISHED))):
        if row[column] not in known:
            raise FormatError(str(path), number, f"{column} to be one of {', '.join(known)}", row[column])
    return System(row["name"], row["kind"], row["title"], PUBLISHED.get(row["published"]))
