"""Write and read the signature beside a scored table: what made its scores and what each new column means.

A file of that name may contain anything, so nothing in it is trusted.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import string
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from operator import add
from pathlib import Path
from typing import Any, Self

from moses_rnn.errors import InputError, printable
from moses_rnn.files.streams import parse_json
from moses_rnn.table.phrase_table import DEFAULT_FLOOR
from moses_rnn.version import __version__

MAX_BYTES = 1 << 20
PROGRAM = f"moses_rnn {__version__}"
EARLIER = "earlier_columns"  # columns recorded by earlier signatures, if a table was scored more than once
PROBABILITY = "exp of it; Moses takes the logarithm"
LOGARITHM = "natural logarithm"  # of versions before 1.0.0
UNKNOWN_WARNING = 0.2  # share of pairs with a word that the model reads as <unk>
MOST_FLOOR = 1e300  # size of a recorded floor; JSON may hold whole numbers beyond any float
UNKNOWN_REFUSAL = 0.8  # the share above which the model does not fit the table
FLOORED_REFUSAL = 0.5  # share of scores that were raised to the floor


@dataclass(frozen=True)
class AddedColumn:
    """A column that scoring added to a table, without its counts over lines."""

    index: int  # from 0, as Moses counts
    name: str
    meaning: str
    unbounded: bool = False  # whether it may hold more than log-probabilities
    written_as: str = PROBABILITY
    floor: float | None = None  # to which log scores were raised

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Self | None:
        """Check a column's record in a file; return None if it does not say which column it is, or its name."""
        index, floor = record.get("index"), record.get("floor")
        if type(index) is not int or index < 0 or "name" not in record:
            return None
        return cls(
            index,
            str(record["name"]),
            str(record.get("meaning", "")),
            unbounded=record.get("unbounded") is True,
            written_as=str(record.get("written_as", PROBABILITY)),
            floor=float(floor) if isinstance(floor, int | float) and abs(floor) <= MOST_FLOOR else None,
        )

    def as_record(self) -> dict[str, Any]:
        """Return the record for a file; a column of log-probabilities has no key "unbounded"."""
        return {key: value for key, value in asdict(self).items() if key != "unbounded" or value}


@dataclass(frozen=True)
class Signature:
    """The record beside a table; false if there is none.

    `record` is the file's content, which may be anything. The other properties are checked: they leave out what is not
    as moses-rnn writes it.
    """

    record: Mapping[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.record)

    @property
    def added(self) -> list[AddedColumn]:
        """The columns that the last run added."""
        return list(filter(None, map(AddedColumn.of_record, records_of(self.record, "added_columns"))))

    @cached_property
    def columns(self) -> dict[int, AddedColumn]:
        """The columns that all runs added, by index."""
        earlier = filter(None, map(AddedColumn.of_record, records_of(self.record, EARLIER)))
        return {column.index: column for column in (*earlier, *self.added)}

    @property
    def names(self) -> dict[int, str]:
        """The names of these columns, by index."""
        return {index: column.name for index, column in self.columns.items()}

    @property
    def models(self) -> list[dict[str, Any]]:
        """The records of the models that made the scores: direction and hashes."""
        return records_of(self.record, "models")

    def names_model(self, hashes: Mapping[str, str]) -> bool:
        """Whether a model, given by the hashes of its files, made some of the scores."""
        return any(model.get("sha256") == hashes for model in self.models)

    def floor(self, column: int) -> float:
        """Return the floor to which a column's log scores were raised; the default if none is recorded."""
        floor = self.columns[column].floor if column in self.columns else None
        return DEFAULT_FLOOR if floor is None else floor

    def changed(self, changes: Mapping[str, Any], step: str, how: Mapping[str, Any]) -> Signature:
        """Return the signature of a table with changed lines; it keeps the record of what made its scores.

        `changes` has the names of input and output, and the output's size, hash, lines and columns. `step` says what
        was done ("pruned" or "extended"), `how` with which settings.
        """
        record = {"program": PROGRAM, **self.record, **changes}
        record.pop("input_content", None)  # that of the table before it was scored
        record["added_columns"] = [column.as_record() for column in self.added]
        record[step] = [*records_of(record, step), dict(how)]
        return Signature(record)

    def as_file(self) -> bytes:
        """Format the signature as a JSON file."""
        return (json.dumps(self.record, indent=2) + "\n").encode()


def read_signature(table: str) -> Signature:
    """Read the signature beside a table, or beside a link's target; empty if there is none or it is invalid."""
    path = Path(table + ".json")
    try:
        if not path.exists() and Path(table).is_symlink():
            path = Path(f"{Path(table).resolve()}.json")
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            return Signature()
        record = parse_json(path.read_bytes())
    except (OSError, ValueError):
        return Signature()
    is_ours = isinstance(record, dict) and str(record.get("program", "")).startswith("moses_rnn ")
    return Signature(record if is_ours else {})


def records_of(recorded: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the list of records under `key` of an untrusted file; skip what is no record."""
    records = recorded.get(key)
    return [record for record in records if isinstance(record, dict)] if isinstance(records, list) else []


def own_columns(columns: int, added: Iterable[int]) -> int:
    """Return how many of a table's first columns scoring has not added."""
    return min([columns, *added])


def free_name(name: str, taken: Iterable[str], first: str = "") -> str:
    """Return the name of a new score: RNN or, if that is taken, RNN1, RNN2 …; `first` is the number of the first."""
    names = (f"{name}{number}" for number in itertools.chain([first], itertools.count(1)))
    return next(one for one in names if one not in {*taken})


def without_number(name: str) -> str:
    """Return the name that `free_name` gave a number."""
    return name.rstrip(string.digits)


def check_probabilities(table: str, signature: Signature) -> None:
    """Raise InputError if a score of a table is a logarithm."""
    for column in signature.columns.values():
        if column.written_as == LOGARITHM:
            raise InputError(
                f"{table}: expected probabilities in score {column.index + 1}, found logarithms",
                advice="Moses takes the logarithm itself. Score the original table again.",
            )


def check_signature(table: str) -> str:
    """Raise InputError unless a file has the size and hash in its signature; return a description of both."""
    if not Path(table).is_file():
        raise InputError(f"{table}: expected a regular file to compare with its signature, found a pipe")
    signature = read_signature(table)
    if not signature:
        raise InputError(f"{table}.json: expected the signature that moses-rnn-score writes, found none")
    expected = signature.record.get("file")
    if not isinstance(expected, dict) or not expected:
        raise InputError(f"{table}.json: expected size and SHA-256 of the table, found none")
    actual = digest_of(table)
    if actual != expected:
        raise InputError(
            f"{table}: expected {_describe(expected)} as in its signature, found {_describe(actual)}",
            advice=(
                "The table changed, was cut short or was damaged after scoring. Make changes in the original table, "
                "and score it again."
            ),
        )
    return f"{_describe(actual)}, as written by {printable(signature.record['program'])}"


def signature_of(table: str) -> Signature:
    """Return a table's signature, if any; a pipe has none.

    Raise InputError if it is of a different file, or of one with logarithms.
    """
    signature = read_signature(table) if Path(table).is_file() else Signature()
    if signature:
        check_signature(table)
        check_probabilities(table, signature)
    return signature


def _describe(digest: dict[str, Any]) -> str:
    return f"{printable(digest.get('bytes'))} bytes, SHA-256 {printable(digest.get('sha256'))[:16]}…"


def digest_of(path: str | Path) -> dict[str, Any]:
    """Return the size and the hash of a file."""
    with Path(path).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
        return {"bytes": file.tell(), "sha256": digest.hexdigest()}


@dataclass
class TableCounts:
    """Counts over lines, for the state of an unfinished run, the signature and the user.

    Up to line number `read` of the table, `lines` were written and `rejected` left out. Lists have one value per added
    column, or none without lines: `unknown` counts pairs with a word that is read as ``<unk>``, `floored` scores that
    were raised to the floor. `oom_splits` counts how often work was split because the device ran out of memory.
    `odd_lines` are the counts of `LineWarnings`.
    """

    lines: int = 0
    unknown: list[int] = field(default_factory=list)
    floored: list[int] = field(default_factory=list)
    lowest: list[float] = field(default_factory=list)
    highest: list[float] = field(default_factory=list)
    read: int = 0
    rejected: int = 0
    oom_splits: int = 0
    odd_lines: dict[str, list[int]] = field(default_factory=dict)

    @classmethod
    def of_signature(cls, signature: Signature) -> Self:
        """Read a signature's counts; raise KeyError, TypeError or ValueError if they are none."""
        record = signature.record
        lines, columns = int(record["lines"]), record["added_columns"]
        counted: dict[str, Any] = {
            key: [convert(column[key]) for column in columns if lines]
            for key, convert in (("unknown", int), ("floored", int), ("lowest", float), ("highest", float))
        }
        return cls(lines, **counted, rejected=int(record["rejected_lines"]))

    def add(self, more: TableCounts) -> None:
        """Add the counts of a further chunk or shard, or those of an interrupted run."""
        if not self.lines:
            self.unknown, self.floored = more.unknown, more.floored
            self.lowest, self.highest = more.lowest, more.highest
        elif more.lines:
            self.unknown = list(map(add, self.unknown, more.unknown))
            self.floored = list(map(add, self.floored, more.floored))
            self.lowest = list(map(min, self.lowest, more.lowest))
            self.highest = list(map(max, self.highest, more.highest))
        self.lines += more.lines
        self.rejected += more.rejected
        self.oom_splits += more.oom_splits
        self.read = max(self.read, more.read)
        for kind, (count, first) in more.odd_lines.items():
            self.odd_lines.setdefault(kind, [0, first])[0] += count

    def of_column(self, i: int) -> dict[str, Any]:
        """Return a column's counts for a signature, none without lines."""
        if not self.lines:
            return {}
        return {
            "unknown": self.unknown[i],
            "unknown_share": round(self.unknown[i] / self.lines, 6),
            "floored": self.floored[i],
            "floored_share": round(self.floored[i] / self.lines, 6),
            "lowest": self.lowest[i],
            "highest": self.highest[i],
        }
