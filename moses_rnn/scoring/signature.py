"""The signature beside a scored table: what made its numbers and what each new column means."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from moses_rnn import __version__

if TYPE_CHECKING:  # who only reads signatures needs no torch
    from moses_rnn.models.checkpoint import Checkpoint
    from moses_rnn.producers.base import ScoreProducer
    from moses_rnn.scoring.phrase_tables import ColumnOptions, ScoringReport

# of a column: over all lines
COUNTED = ("unknown", "unknown_share", "floored", "floored_share", "lowest", "highest")


def signature(
    files: Mapping[str, Any],
    old_columns: int,
    producers: Sequence[ScoreProducer],
    models: Sequence[Checkpoint],
    options: ColumnOptions,
    report: ScoringReport,
) -> bytes:
    """The signature as a JSON file.

    Args:
        files: names of input and output, size and hash of the output.
        old_columns: scores that the table had.
        producers: of the new columns, in their order.
        models: whose hashes are recorded.
        options: how the scores were written.
        report: what went through.
    """
    record: dict[str, Any] = {
        "program": f"moses_rnn {__version__}",
        "torch": version("torch"),
        **files,
        "lines": report.lines,
        "columns": old_columns + len(producers),
        "added_columns": [
            {
                "index": old_columns + i,  # from 0, as Moses counts
                "name": producer.name,
                "meaning": producer.meaning,
                "written_as": "natural logarithm" if options.logarithms else "exp of it; Moses takes the logarithm",
                "floor": None if options.logarithms else options.floor,
                "unknown": report.unknown[i],
                "unknown_share": share_of(report.unknown[i], report.lines),
                "floored": report.floored[i],
                "floored_share": share_of(report.floored[i], report.lines),
                "lowest": report.lowest[i],
                "highest": report.highest[i],
            }
            for i, producer in enumerate(producers)
        ],
        "models": [{"direction": model.direction, "sha256": dict(model.hashes)} for model in models],
    }
    return _written(record)


def share_of(count: int, lines: int) -> float:
    """A share as it is recorded."""
    return round(count / lines, 6) if lines else 0.0


def pruned_signature(
    before: Mapping[str, Any] | None, files: Mapping[str, Any], lines: int, columns: int, how: Mapping[str, Any]
) -> bytes:
    """The signature of a table from which lines were taken, as a JSON file: what made its numbers stays known.

    Args:
        before: the signature of the larger table, if it has one.
        files: names of input and output, size and hash of the output.
        lines: of the output.
        columns: its scores.
        how: what was taken.
    """
    record = {"program": f"moses_rnn {__version__}", **(before or {}), **files, "lines": lines, "columns": columns}
    added, pruned = (
        found if isinstance(found := record.get(name), list) else [] for name in ("added_columns", "pruned")
    )
    record["added_columns"] = [{k: v for k, v in c.items() if k not in COUNTED} for c in added if isinstance(c, dict)]
    record["pruned"] = [*pruned, dict(how)]
    return _written(record)


def _written(record: Mapping[str, Any]) -> bytes:
    return (json.dumps(record, indent=2) + "\n").encode()
