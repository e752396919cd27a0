"""What is recorded beside a scored table and within a model; such a file may hold anything, so nothing is trusted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from moses_rnn.formats.phrase_table import DEFAULT_FLOOR

MAX_BYTES = 1 << 20
UNKNOWN_WARNING = 0.2  # share of the pairs with a word that the model reads as <unk>
FLOORED_REFUSAL = 0.5  # share of the scores that were raised to the floor


def read_signature(table: str) -> dict[str, Any] | None:
    """The signature beside a table, or beside what a link leads to; None if there is none, or something else."""
    path = Path(table + ".json")
    try:
        if not path.exists() and Path(table).is_symlink():
            path = Path(f"{Path(table).resolve()}.json")
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            return None
        record = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and str(record.get("program", "")).startswith("moses_rnn ") else None


def records_of(recorded: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """A list of records in a file of somebody's; what is none is passed by."""
    found = recorded.get(key)
    return [record for record in found if isinstance(record, dict)] if isinstance(found, list) else []


def recorded_names(signature: Mapping[str, Any]) -> list[str]:
    """Names of the scores that were added to a table."""
    return [str(record["name"]) for record in records_of(signature, "added_columns") if "name" in record]


def added_already(table: str) -> list[str]:
    """Names of the scores that were added to a table, if the signature beside it is of the file as it is now."""
    signature = read_signature(table)
    file = signature.get("file") if signature else None
    if signature is None or not isinstance(file, dict) or file.get("bytes") != Path(table).stat().st_size:
        return []
    return recorded_names(signature)


def recorded_column(signature: Mapping[str, Any], name: str, scores: int) -> int | None:
    """The score of a table that a producer of this name has added last, from 0; None without such a record.

    Args:
        signature: beside the table.
        name: of the producer.
        scores: how many the table has.
    """
    columns = [record.get("index") for record in records_of(signature, "added_columns") if record.get("name") == name]
    return next((c for c in reversed(columns) if isinstance(c, int) and 0 <= c < scores), None)


def recorded_floor(signature: Mapping[str, Any], column: int) -> float:
    """Below which a score's logarithms were raised; without a record the default."""
    for record in records_of(signature, "added_columns"):
        if record.get("index") == column and isinstance(record.get("floor"), int | float):
            return float(record["floor"])
    return DEFAULT_FLOOR
