"""The signature beside a scored table: what made its numbers and what each new column means; written and read.

A file of that name may hold anything: nothing that is read is trusted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import add
from pathlib import Path
from typing import Any

from moses_rnn import __version__
from moses_rnn.files.streams import parse_json
from moses_rnn.table.phrase_table import DEFAULT_FLOOR

MAX_BYTES = 1 << 20
PROGRAM = f"moses_rnn {__version__}"
EARLIER = "earlier_columns"  # of a table that was scored more than once: what earlier signatures say of added ones
# of a column: over all lines
COUNTED = ("unknown", "unknown_share", "floored", "floored_share", "lowest", "highest")
PROBABILITY = "exp of it; Moses takes the logarithm"
UNKNOWN_WARNING = 0.2  # share of the pairs with a word that the model reads as <unk>
UNKNOWN_REFUSAL = 0.8  # the same, from which on the model is another table's
FLOORED_REFUSAL = 0.5  # share of the scores that were raised to the floor


def read_signature(table: str) -> dict[str, Any] | None:
    """The signature beside a table, or beside what a link leads to; None if there is none, or something else."""
    path = Path(table + ".json")
    try:
        if not path.exists() and Path(table).is_symlink():
            path = Path(f"{Path(table).resolve()}.json")
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            return None
        record = parse_json(path.read_bytes())
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) and str(record.get("program", "")).startswith("moses_rnn ") else None


def records_of(recorded: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """A list of records in a file that may hold anything; what is not a record is left out."""
    records = recorded.get(key)
    return [record for record in records if isinstance(record, dict)] if isinstance(records, list) else []


def column_records(signature: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What is recorded of the scores that were added to a table, in earlier runs and in the last one."""
    return [*records_of(signature, EARLIER), *records_of(signature, "added_columns")]


def recorded_columns(signature: Mapping[str, Any]) -> dict[int, dict[str, Any]]:
    """The same of scores that have a name, by column, from 0."""
    named = [record for record in column_records(signature) if "name" in record]
    return {column: record for record in named if type(column := record.get("index")) is int and column >= 0}


def recorded_names(signature: Mapping[str, Any]) -> dict[int, str]:
    """Names of the scores that were added to a table, by column, from 0."""
    return {column: str(record["name"]) for column, record in recorded_columns(signature).items()}


def recorded_floor(signature: Mapping[str, Any], column: int) -> float:
    """Below which a score's logarithms were raised; without a record the default."""
    floor = recorded_columns(signature).get(column, {}).get("floor")
    return float(floor) if isinstance(floor, int | float) else DEFAULT_FLOOR


def added_names(signature: Mapping[str, Any]) -> list[str]:
    """Names of the scores that were added to a table, whether it is known where they stand or not."""
    return [str(record["name"]) for record in column_records(signature) if "name" in record]


def fitting_signature(table: str) -> dict[str, Any]:
    """The signature beside a table if it is of a file of that size, which is quick to see; else nothing."""
    signature = read_signature(table)
    file = signature.get("file") if signature else None
    if signature is None or not isinstance(file, dict) or file.get("bytes") != Path(table).stat().st_size:
        return {}
    return signature


@dataclass
class ColumnCounts:
    """What was counted over all lines; lists have one value for each added column.

    `unknown` are pairs with a word that is read as ``<unk>``, `floored` scores that were raised to the floor.
    """

    lines: int = 0
    unknown: list[int] = field(default_factory=list)
    floored: list[int] = field(default_factory=list)
    lowest: list[float] = field(default_factory=list)
    highest: list[float] = field(default_factory=list)

    def add(self, more: ColumnCounts) -> None:
        """Count further lines of the same columns."""
        if not self.lines:
            self.unknown, self.floored = more.unknown, more.floored
            self.lowest, self.highest = more.lowest, more.highest
        else:
            self.unknown = list(map(add, self.unknown, more.unknown))
            self.floored = list(map(add, self.floored, more.floored))
            self.lowest = list(map(min, self.lowest, more.lowest))
            self.highest = list(map(max, self.highest, more.highest))
        self.lines += more.lines

    def of_column(self, i: int) -> dict[str, Any]:
        """As they stand in a signature; see COUNTED."""
        lines = max(self.lines, 1)
        return {
            "unknown": self.unknown[i],
            "unknown_share": round(self.unknown[i] / lines, 6),
            "floored": self.floored[i],
            "floored_share": round(self.floored[i] / lines, 6),
            "lowest": self.lowest[i],
            "highest": self.highest[i],
        }


def changed_signature(
    before: Mapping[str, Any] | None,
    changes: Mapping[str, Any],
    step: str,
    how: Mapping[str, Any],
    added: Sequence[tuple[str, str]] = (),
) -> bytes:
    """The signature of a table whose lines are others, as a JSON file: what made its numbers stays known.

    `changes` are names of input and output, size and hash of the output, its lines and columns. `step`, "pruned" or
    "extended", says what was done with the lines, and `how`. `added` are names and meanings of new last columns.
    """
    record = {"program": PROGRAM, **(before or {}), **changes}
    record["added_columns"] = [without_counts(column) for column in records_of(record, "added_columns")]
    for i, (name, meaning) in enumerate(added, start=changes["columns"] - len(added)):
        new = {"index": i, "name": name, "meaning": meaning, "written_as": PROBABILITY, "floor": None}
        record["added_columns"].append(new)
    record[step] = [*records_of(record, step), dict(how)]
    return as_file(record)


def without_counts(column: Mapping[str, Any]) -> dict[str, Any]:
    """What is recorded of a column that does not depend on its lines."""
    return {key: value for key, value in column.items() if key not in COUNTED}


def as_file(record: Mapping[str, Any]) -> bytes:
    """A signature as it is written."""
    return (json.dumps(record, indent=2) + "\n").encode()
