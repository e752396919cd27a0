"""Estimate how long scoring a table will take here by scoring its first lines; write nothing."""

from __future__ import annotations

import time

from moses_rnn.errors import FormatError
from moses_rnn.files.streams import regular_file
from moses_rnn.score.checks import check_table
from moses_rnn.score.input_table import InputTable
from moses_rnn.score.score import computed_by, open_models
from moses_rnn.score.scoring_options import ScoringOptions
from moses_rnn.score.workers import map_in_order, open_workers

SECONDS = 1.0  # minimum scoring time to measure, after the workers' first chunk


def estimate(options: ScoringOptions, seconds: float = SECONDS) -> tuple[float, float, str]:
    """Score the first lines of a table for at least `seconds`; ignore existing outputs.

    Return the lines of the table or shard, extrapolated from its size, the lines per second, and what computed them.
    """
    regular_file(options.table)
    models, columns, compute = open_models(options)
    table = InputTable(options, models[0].form, lambda: None)
    check_table(options, table, models, [column.name for column in columns])
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
    if not lines:
        raise FormatError(options.table, None, f"at least one valid line in shard {options.shard}", "none")
    if lines == first:  # the table is a single chunk
        first, began = 0, started
    return (
        lines / (table.share(read) or 1.0),
        (lines - first) / max(now - began, 1e-9),
        computed_by(compute),
    )
