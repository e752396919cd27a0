"""How long scoring a table will take here, judged by its first lines; nothing is written."""

from __future__ import annotations

import time
from dataclasses import dataclass

from moses_rnn.errors import FormatError, InputError
from moses_rnn.files.outputs import DEFAULT_LEVEL, Packing
from moses_rnn.files.streams import STANDARD_STREAM, is_gzip
from moses_rnn.scoring.inputs import open_inputs
from moses_rnn.scoring.phrase_tables import ScoringReport, scored_table
from moses_rnn.scoring.pools import open_workers
from moses_rnn.scoring.request import ScoringRequest

SECONDS = 1.0  # of scoring, at least, behind the blocks with which the workers begin


@dataclass(frozen=True)
class Estimate:
    """What to expect of a scoring; `lines` are those of the table, or of a shard of it, as far as its size tells."""

    lines: float
    lines_per_second: float
    computed_by: str  # the native core or torch, and in which precision

    @property
    def seconds(self) -> float:
        """How long it takes."""
        return self.lines / self.lines_per_second

    def __str__(self) -> str:
        hours, rest = divmod(round(self.seconds), 3600)
        took = f"{hours}:{rest // 60:02d}:{rest % 60:02d}"
        return (
            f"{self.lines_per_second:,.0f} lines/s here ({self.computed_by}): {took} for about {self.lines:,.0f} lines"
        )


def estimate(request: ScoringRequest, seconds: float = SECONDS) -> Estimate:
    """Score the first lines of a table, and extrapolate from them.

    Args:
        request: all choices; no output is looked at.
        seconds: how long to score at least, or to the table's end.

    Raises:
        InputError: the table comes through a pipe, whose size nobody knows, or it or the model is rejected.
    """
    if request.table == STANDARD_STREAM:
        raise InputError("--estimate: expected a table of a known size, found standard input")
    inputs = open_inputs(request, _leave_out if request.rejects else None, lambda: None)
    pack, report = Packing(is_gzip(request.output), DEFAULT_LEVEL), ScoringReport()
    started = time.monotonic()
    with open_workers(inputs, pack) as workers:
        blocks = scored_table(inputs.lines, workers, report, inputs.odd)
        next(blocks, None)
        first, began = report.lines, time.monotonic()
        for _ in blocks:
            if time.monotonic() - began >= seconds:
                break
        now = time.monotonic()
    if report.lines == first:  # the table is a single block
        first, began = 0, started
    share = inputs.share(report) or 1.0
    return Estimate(report.lines / share, (report.lines - first) / max(now - began, 1e-9), inputs.computed_by)


def _leave_out(_line: bytes, _error: FormatError) -> None:
    """What happens to an invalid line where nothing is written."""
