"""How much a report shows and looks at; no library is loaded here, so that --help can show it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """What the command line asks for."""

    phrase_table: str
    model: Path | None  # None: the one beside the table
    output: str
    sources: int
    samples: int
    phrases: int
    points: int
    source_text: str | None
    results: str | None
    column: int | None
    threads: int | None
    seed: int
    force: bool
