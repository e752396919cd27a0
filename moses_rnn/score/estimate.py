"""Estimate how long scoring a table will take here by scoring its first lines; write nothing."""

from __future__ import annotations

import time
from dataclasses import dataclass

from moses_rnn.errors import InputError
from moses_rnn.files.streams import STANDARD_STREAM
from moses_rnn.score.checks import check_form, check_new
from moses_rnn.score.options import ScoringOptions
from moses_rnn.score.reading import InputTable
from moses_rnn.score.score import computed_by, manifest_of, open_models
from moses_rnn.score.workers import map_in_order, open_workers
from moses_rnn.table.signatures import added_names, fitting_signature

SECONDS = 1.0  # minimum scoring time to measure, after the workers' first chunk


@dataclass(frozen=True)
class Estimate:
    """The expected time of a scoring run; `lines` estimates the lines of the table or shard from its size."""

    lines: float
    lines_per_second: float
    computed_by: str  # the native core or torch, and in which precision

    @property
    def seconds(self) -> float:
        """Expected duration."""
        return self.lines / self.lines_per_second

    def __str__(self) -> str:
        hours, rest = divmod(round(self.seconds), 3600)
        took = f"{hours}:{rest // 60:02d}:{rest % 60:02d}"
        return (
            f"{self.lines_per_second:,.0f} lines/s here ({self.computed_by}): {took} for about {self.lines:,.0f} lines"
        )


def estimate(options: ScoringOptions, seconds: float = SECONDS) -> Estimate:
    """Score the first lines of a table for at least `seconds` and extrapolate; ignore existing outputs."""
    if options.table == STANDARD_STREAM:
        raise InputError("--estimate: expected a table of a known size, found standard input")
    models, columns, compute = open_models(options)
    names = [column.name for column in columns]
    check_new(options, added_names(fitting_signature(options.table)), names)
    table = InputTable(options, models[0].form, lambda: None)
    check_form(table, models)
    lines = first = read = 0
    started = began = time.monotonic()
    with open_workers(options, models, columns, compute) as workers:
        for chunk, _ in map_in_order(table.chunks(), workers):
            lines, read = lines + len(chunk), int(chunk.numbers[-1])
            table.rejects.until(read)  # discard them
            if not first:
                first, began = lines, time.monotonic()
            elif time.monotonic() - began >= seconds:
                break
        now = time.monotonic()
    if lines == first:  # the table is a single chunk
        first, began = 0, started
    manifest = manifest_of(options, table, models, (), compute)
    return Estimate(lines / (table.share(read) or 1.0), (lines - first) / max(now - began, 1e-9), computed_by(manifest))
