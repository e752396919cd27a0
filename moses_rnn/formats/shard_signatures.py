"""The signature of a shard of a scored table, and that of the whole table, made of all its shards'.

What is read is not trusted: a file of that name may hold anything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moses_rnn.errors import InputError
from moses_rnn.formats.signatures import COUNTED, ColumnCounts, read_signature, records_of

ALIKE = ("program", "torch", "input", "precision", "compiled", "phrases", "columns", "models")  # in all shards
TABLE_HASHES = ("bytes", "first_mb", "last_mb")  # of a table's identity; copies on other machines have other times


@dataclass(frozen=True)
class ScoredShard:
    """A shard as its signature tells of it.

    Bytes `begin` to `end` of the uncompressed table, which has `size`, are in it; `bytes` and `sha256` are its file's.
    `settings` are what must be equal in all shards.
    """

    path: str
    number: int
    count: int
    begin: int
    end: int
    size: int
    table: str
    factors: tuple[int, int]
    old_columns: int
    columns: Sequence[Mapping[str, Any]]
    counts: ColumnCounts
    rejected: int
    bytes: int
    sha256: str
    record: Mapping[str, Any]

    @property
    def lines(self) -> int:
        """How many lines it has."""
        return self.counts.lines

    @property
    def settings(self) -> dict[str, Any]:
        """What must be equal in all shards, by name."""
        shard = self.record["shard"]
        return {
            **{key: self.record.get(key) for key in ALIKE},
            "number of shards": self.count,
            "table": [shard["identity"].get(key) for key in TABLE_HASHES],
            "size of the table": self.size,
            "columns before": self.old_columns,
            "added columns": [{k: v for k, v in c.items() if k not in COUNTED} for c in self.columns],
        }

    @property
    def computed_by(self) -> str:
        """The native core or torch."""
        return str(self.record.get("native") or "torch")


def read_shard(path: str) -> ScoredShard:
    """Read the signature beside a shard.

    Raises:
        InputError: there is none, or it is not one of a shard.
    """
    record = read_signature(path)
    if not Path(path).is_file() or record is None:
        found = "no signature beside it" if Path(path).is_file() else "nothing of that name"
        raise InputError(
            f"{path}: expected a shard of a scored table, found {found}",
            advice="Did its run end? With --resume it goes on; PATH.json is written at its end.",
        )
    try:
        return _shard_of(path, record)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"{path}.json: expected the signature of a shard, as moses-rnn-score --shard writes it, found one without "
            f"{error}"
            if isinstance(error, KeyError)
            else f"{path}.json: expected the signature of a shard: {error}"
        ) from error


def _shard_of(path: str, record: Mapping[str, Any]) -> ScoredShard:
    shard, file = record["shard"], record["file"]
    number, count, begin, end, size = (int(shard[key]) for key in ("number", "count", "begin", "end", "size"))
    if not (1 <= number <= count and 0 <= begin <= end <= size):
        raise ValueError(f"shard {number}/{count} of bytes {begin} to {end} of {size}")
    columns = records_of(record, "added_columns")
    lines = int(record["lines"])
    counted = {key: [column[key] for column in columns] for key in ("unknown", "floored", "lowest", "highest")}
    source, target = (int(n) for n in shard["factors"])
    shard["identity"].get("bytes")
    return ScoredShard(
        path=path,
        number=number,
        count=count,
        begin=begin,
        end=end,
        size=size,
        table=str(shard["table"]),
        factors=(source, target),
        old_columns=int(record["columns"]) - len(columns),
        columns=columns,
        counts=ColumnCounts(lines, **counted) if lines else ColumnCounts(),
        rejected=int(record["rejected_lines"]),
        bytes=int(file["bytes"]),
        sha256=str(file["sha256"]),
        record=record,
    )


def merged_signature(shards: Sequence[ScoredShard], files: Mapping[str, Any]) -> bytes:
    """The signature of the whole table, as a JSON file.

    Args:
        shards: all of them, in the table's order.
        files: the table's name, its size and hash.
    """
    first = shards[0]
    counts = ColumnCounts()
    for shard in shards:
        counts.add(shard.counts)
    cores = sorted({shard.computed_by for shard in shards})
    record = {key: value for key, value in first.record.items() if key != "shard"}
    record |= {
        **files,
        "native": None if cores == ["torch"] else " and ".join(cores),
        "rejected_lines": sum(shard.rejected for shard in shards),
        "lines": counts.lines,
        "added_columns": [{**column, **counts.of_column(i)} for i, column in enumerate(first.columns)],
        "merged_from": len(shards),
    }
    return (json.dumps(record, indent=2) + "\n").encode()
