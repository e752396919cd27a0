"""What commands print for people at their end, as one JSON object for programs; docs/shell.md has the keys."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moses_rnn.cli.command import put

if TYPE_CHECKING:
    from moses_rnn.formats.validation import Validation
    from moses_rnn.moses.decoder import Comparison
    from moses_rnn.training.run import Outcome

Record = Mapping[str, Any]

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print the summary on stdout as one JSON object, not as text"
)


def check_json(as_json: bool, output: str, *, estimate: bool = False) -> None:
    """Raise click.UsageError if the summary is not all that goes to stdout."""
    if as_json and (output == "-" or estimate):
        raise click.UsageError("--json is a summary on stdout: it cannot go with a table there, nor with --estimate")


def put_json(record: Record) -> None:
    """Print a record in one line of ASCII; numbers that are not finite are null, as JSON knows none."""
    put(json.dumps(_finite(record), allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def training_record(outcome: Outcome, folder: Path, warning: str) -> Record:
    """How a training ended; costs are of held-out examples, the rival's is a unigram model's or guessing's."""
    progress = outcome.progress
    return {
        "model": str(folder),
        "finished": progress.finished,
        "pairs": progress.examples,
        "steps": progress.steps,
        "seconds": round(progress.seconds, 3),
        "best_cost": progress.best,
        "rival_cost": outcome.rival_cost,
        "unit": outcome.measure.unit,
        "verdict": outcome.verdict.name,
        "verdict_text": str(outcome.verdict),
        "warnings": [warning] if warning else [],
    }


def validation_record(report: Validation) -> Record:
    """What a sound table holds."""
    return {
        "table": report.name,
        "sound": True,
        "lines": report.lines,
        "sources": report.sources,
        "longest_source": report.longest_source,
        "longest_target": report.longest_target,
        "scores": [{"lowest": low, "highest": high} for low, high in report.ranges],
        "sorted": report.unsorted is None,
        "first_unsorted": report.unsorted,
        "repeated": report.repeated,
        "signature": report.signature,
        "warnings": report.warnings,
    }


def verification_record(table: str, holds: Sequence[str], comparisons: Sequence[Comparison]) -> Record:
    """What an ini and a table have in common, and what a decoder saw of each kind of dictionary."""
    return {
        "table": table,
        "good": all(comparison.is_good for comparison in comparisons),
        "ini": list(holds),
        "kinds": [
            {
                "kind": one.kind,
                "good": one.is_good,
                "pairs": one.pairs,
                "values": one.values,
                "largest_difference": float(one.largest),
                "values_below": one.below,
                "largest_difference_below": float(one.largest_below),
                "missing": len(one.missing),
                "wrong": len(one.wrong),
                "failure": one.failure,
            }
            for one in comparisons
        ],
    }
