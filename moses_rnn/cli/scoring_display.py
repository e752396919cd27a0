"""What a scoring run says at its end: its counts, and the lines that a moses.ini needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from moses_rnn.cli.command import put, say

if TYPE_CHECKING:
    from moses_rnn.scoring.request import ScoringRequest, ScoringResult


def summary(request: ScoringRequest, result: ScoringResult) -> Iterator[str]:
    """What was written where, by what, and how far the scores go."""
    from moses_rnn.scoring.fit import shares

    report = result.report
    left_out = f", {result.rejected:,} left out" if result.rejected else " in and out"
    yield f"{report.lines:,} lines{left_out}: {request.output}"
    if request.output != "-":
        yield f"signature: {request.output}.json"
    if request.ini:
        yield f"ini: {request.ini.output}"
    yield f"computed by: {result.computed_by}"
    for i, name in enumerate(result.column_names):
        yield f"{name}: log values from {report.lowest[i]:.4g} to {report.highest[i]:.4g}"
    for name, unknown, floored in shares(report, result.column_names):
        yield f"{name}: {unknown:.1%} of the pairs have <unk>, {floored:.1%} of the scores were raised to the floor"


def show_ini_lines(result: ScoringResult, *, on_stderr: bool) -> None:
    """Print what is to be copied into an ini."""
    lines = f"[feature]\n{result.feature_line}\n\n[weight]\n{result.weight_line}"
    if on_stderr:
        say(lines)
    else:
        put(lines)
