"""How much a report shows and looks at; no library is loaded here, so that --help can show it."""

from __future__ import annotations

from dataclasses import dataclass

from moses_rnn.analysis.choices import ModelAndTable


@dataclass(frozen=True, kw_only=True)
class ReportOptions(ModelAndTable):
    """What the command line asks for."""

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
