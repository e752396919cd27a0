"""What there is to choose from in an analysis; no library is loaded here, so that --help can show it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

CRITERIA = ("rnn", "direct", "both")  # by which pairs are pruned
METHODS = ("tsne", "pca")  # by which maps are laid out


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """What the command line asks of a report, and how much it shows and looks at."""

    phrase_table: str
    model: Path | None  # None: the one beside the table
    output: str
    source_text: str | None
    results: str | None
    column: int | None
    force: bool
    sources: ClassVar[int] = 3  # of each kind in Table 2
    samples: ClassVar[int] = 50  # of each source in Table 3
    phrases: ClassVar[int] = 2000  # to draw for the gates
    points: ClassVar[int] = 500  # of either map
    seed: ClassVar[int] = 1
