"""The signature beside a scored table: what made its numbers and what each new column means; written and read.

A file of that name may hold anything: nothing that is read is trusted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moses_rnn import __version__
from moses_rnn.files.streams import parse_json
from moses_rnn.formats.phrase_table import DEFAULT_FLOOR

Column = tuple[str, str, bool]  # its name, what it means, and whether it may be above 0: no log-probability

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
    records = column_records(signature)
    return {record["index"]: record for record in records if "name" in record and _is_column(record.get("index"))}


def _is_column(index: object) -> bool:
    return type(index) is int and index >= 0


def recorded_names(signature: Mapping[str, Any]) -> dict[int, str]:
    """Names of the scores that were added to a table, by column, from 0."""
    return {column: str(record["name"]) for column, record in recorded_columns(signature).items()}


def fitting_signature(table: str) -> dict[str, Any]:
    """The signature beside a table if it is of a file of that size, which is quick to see; else nothing."""
    signature = read_signature(table)
    file = signature.get("file") if signature else None
    if signature is None or not isinstance(file, dict) or file.get("bytes") != Path(table).stat().st_size:
        return {}
    return signature


def added_already(table: str) -> list[str]:
    """Names of the scores that were added to a table, if the signature beside it is of the file as it is now."""
    return [str(record["name"]) for record in column_records(fitting_signature(table)) if "name" in record]


def first_added(signature: Mapping[str, Any], scores: int) -> int:
    """How many scores a table had before any was added; all of them as far as its signature knows of none."""
    return min([*recorded_columns(signature), scores])


def recorded_floor(signature: Mapping[str, Any], column: int) -> float:
    """Below which a score's logarithms were raised; without a record the default."""
    floor = recorded_columns(signature).get(column, {}).get("floor")
    return float(floor) if isinstance(floor, int | float) else DEFAULT_FLOOR


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
            self.unknown, self.floored = [*more.unknown], [*more.floored]
            self.lowest, self.highest = [*more.lowest], [*more.highest]
        elif more.lines:
            self.unknown = [a + b for a, b in zip(self.unknown, more.unknown, strict=True)]
            self.floored = [a + b for a, b in zip(self.floored, more.floored, strict=True)]
            self.lowest = [min(a, b) for a, b in zip(self.lowest, more.lowest, strict=True)]
            self.highest = [max(a, b) for a, b in zip(self.highest, more.highest, strict=True)]
        self.lines += more.lines

    def of_column(self, i: int) -> dict[str, Any]:
        """As they stand in a signature; see COUNTED."""
        return {
            "unknown": self.unknown[i],
            "unknown_share": _share(self.unknown[i], self.lines),
            "floored": self.floored[i],
            "floored_share": _share(self.floored[i], self.lines),
            "lowest": self.lowest[i],
            "highest": self.highest[i],
        }


def _share(count: int, lines: int) -> float:
    return round(count / lines, 6) if lines else 0.0


def scored_signature(
    manifest: Mapping[str, Any],
    files: Mapping[str, Any],
    old_columns: int,
    columns: Sequence[Column],
    counts: ColumnCounts,
    before: Mapping[str, Any],
) -> bytes:
    """The signature of a table that was scored, as a JSON file.

    Args:
        manifest: everything that decides the table's bytes, see `Inputs.manifest`.
        files: names of input and output, size and hash of the output, how many lines were rejected.
        old_columns: scores that the table had.
        columns: that were added.
        counts: of all lines.
        before: the table's own signature; empty if it has none.
    """
    logarithms = manifest["logarithms"]
    earlier = [_without_counts(one) for column, one in recorded_columns(before).items() if column < old_columns]
    added = [
        {
            "index": old_columns + i,  # from 0, as Moses counts
            "name": name,
            "meaning": meaning,
            **({"unbounded": True} if unbounded else {}),  # a column of probabilities has no such key
            "written_as": "natural logarithm" if logarithms else PROBABILITY,
            "floor": None if logarithms else manifest["floor"],
            **counts.of_column(i),
        }
        for i, (name, meaning, unbounded) in enumerate(columns)
    ]
    record = {
        "program": PROGRAM,
        "torch": manifest["torch"],
        **files,
        "precision": manifest["precision"],
        "compiled": False,  # true in some older ones
        "native": manifest["native"],
        "phrases": manifest["phrases"],
        "lines": counts.lines,
        "columns": old_columns + len(added),
        **({EARLIER: earlier} if earlier else {}),
        "added_columns": added,
        "models": [*records_of(before, "models"), *manifest["models"]],
    }
    return _as_file(record)


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
    record = _of_other_lines(before, {**files, "lines": lines, "columns": columns})
    return _as_file(_with_step(record, "pruned", how))


def extended_signature(
    before: Mapping[str, Any] | None,
    files: Mapping[str, Any],
    shape: tuple[int, int],
    added: Sequence[tuple[str, str]],
    how: Mapping[str, Any],
) -> bytes:
    """The signature of a table to which lines were added, as a JSON file.

    Args:
        before: the signature of the smaller table, if it has one.
        files: names of input and output, size and hash of the output.
        shape: lines and columns of the output.
        added: names and meanings of the columns that it has beside those of the smaller table, the last ones.
        how: what was added.
    """
    lines, columns = shape
    record = _of_other_lines(before, {**files, "lines": lines, "columns": columns})
    for i, (name, meaning) in enumerate(added, start=columns - len(added)):
        new = {"index": i, "name": name, "meaning": meaning, "written_as": PROBABILITY, "floor": None}
        record["added_columns"].append(new)
    return _as_file(_with_step(record, "extended", how))


def _of_other_lines(before: Mapping[str, Any] | None, changes: Mapping[str, Any]) -> dict[str, Any]:
    """What a signature says that holds of a table of other lines too: what was counted does not."""
    record = {"program": PROGRAM, **(before or {}), **changes}
    added = records_of(record, "added_columns")
    record["added_columns"] = [_without_counts(column) for column in added]
    return record


def _without_counts(column: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in column.items() if key not in COUNTED}


def _with_step(record: dict[str, Any], step: str, how: Mapping[str, Any]) -> dict[str, Any]:
    """The record with a further step of its kind."""
    steps = record.get(step)
    return {**record, step: [*(steps if isinstance(steps, list) else []), dict(how)]}


def _as_file(record: Mapping[str, Any]) -> bytes:
    return (json.dumps(record, indent=2) + "\n").encode()
