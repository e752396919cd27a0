"""Is a phrase table what Moses and this package take it for? A streaming check without scoring."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moses_rnn.errors import FormatError, InputError, printable
from moses_rnn.files.progress import Advanced
from moses_rnn.files.streams import MAX_LINE_BYTES, Meter, read_lines, sorting
from moses_rnn.formats.census import Census
from moses_rnn.formats.phrase_forms import PLAIN, PhraseForm, words
from moses_rnn.formats.phrase_table import TableLine, parse_table
from moses_rnn.formats.signatures import read_signature

LINES_BETWEEN_LOOKS = 10_000


@dataclass
class Validation:
    """What was found in a table.

    `ranges` are the lowest and highest value of each score; `unsorted` is the first line that ``LC_ALL=C sort`` would
    put before the one above it.
    """

    name: str
    lines: int = 0
    sources: int = 0
    longest_source: int = 0  # words
    longest_target: int = 0
    repeated: int = 0  # lines with the source and target of the one above
    unsorted: int | None = None
    ranges: list[tuple[float, float]] = field(default_factory=list)
    bad_lines: int = 0
    warnings: list[str] = field(default_factory=list)
    signature: str = "none beside it"

    def summary(self) -> Iterator[str]:
        """As lines of text."""
        yield f"{self.name}: {self.lines:,} lines with {len(self.ranges)} scores each"
        yield f"  sources: {self.sources:,}, of up to {self.longest_source:,} words (targets {self.longest_target:,})"
        for i, (low, high) in enumerate(self.ranges):
            yield f"  score {i + 1}: {low:.6g} to {high:.6g}" + self._constant(low, high)
        order = "yes" if self.unsorted is None else f"no, first at line {self.unsorted:,}"
        yield f"  sorted as by LC_ALL=C sort: {order}"
        if self.repeated:
            yield f"  lines that repeat the pair above: {self.repeated:,}"
        yield f"  signature: {self.signature}"

    def _constant(self, low: float, high: float) -> str:
        return " (constant: MERT cannot find a weight for it)" if low == high and self.lines > 1 else ""


def validate(
    table: str,
    bad_line: Callable[[str], None],
    advanced: Advanced,
    *,
    strict: bool = False,
    must_be_sorted: bool = False,
    max_line_bytes: int = MAX_LINE_BYTES,
    form: PhraseForm = PLAIN,
) -> Validation:
    """Read a table to its end and look at every line.

    Args:
        table: the file.
        bad_line: told of each line that is no phrase pair.
        advanced: told now and then how many lines are done and what share of the file.
        strict: what is only odd is an error too.
        must_be_sorted: so is a table that ``LC_ALL=C sort`` would change.
        max_line_bytes: longer lines are refused.
        form: which factors its words have, if any.

    Raises:
        InputError: the table has bad lines, is damaged, or is not what was asked for.
    """
    found = Validation(table)

    def reject(_line: bytes, error: FormatError) -> None:
        found.bad_lines += 1
        bad_line(str(error))

    meter = Meter()
    census = Census(table, strict=strict, thorough=True)
    lines = read_lines(table, max_line_bytes=max_line_bytes, meter=meter)
    for line in _measured(census.passing(parse_table(lines, table, reject, form)), found):
        if line.number % LINES_BETWEEN_LOOKS == 0:
            advanced(line.number, meter.share)
    found.warnings = list(census.warnings())
    _check(found, must_be_sorted)
    found.signature = _compared(found)
    return found


def check_signature(table: str) -> str:
    """Whether a file is, byte for byte, the one that its signature was written for; the lines are not looked at.

    Raises:
        InputError: it is not, or has no signature.
    """
    if not Path(table).is_file():
        raise InputError(f"{table}: expected a regular file, whose content can be compared")
    signature = read_signature(table)
    if signature is None:
        raise InputError(f"{table}.json: expected the signature that moses-rnn-score writes, found none")
    expected = signature.get("file")
    if not isinstance(expected, dict) or not expected:
        raise InputError(f"{table}.json: expected size and SHA-256 of the table, found none")
    found = _digest(table)
    if found != expected:
        raise InputError(
            f"{table}: expected {_described(expected)} as in its signature, found {_described(found)}",
            advice="The table was changed, cut short or damaged after it was scored: score it anew.",
        )
    return f"{_described(found)}, as written by {printable(signature['program'])}"


def _described(digest: dict[str, Any]) -> str:
    return f"{printable(digest.get('bytes'))} bytes, SHA-256 {printable(digest.get('sha256'))[:16]}…"


def _digest(path: str) -> dict[str, Any]:
    with Path(path).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
        return {"bytes": file.tell(), "sha256": digest.hexdigest()}


def _measured(lines: Iterable[TableLine], found: Validation) -> Iterator[TableLine]:
    before: TableLine | None = None
    key_before = b""
    for line in lines:
        key = line.line.removesuffix(b"\n")
        found.lines += 1
        _widen(found, [float(score) for score in words(line.scores)])
        if before is None or line.source != before.source:
            found.sources += 1
            found.longest_source = max(found.longest_source, len(words(line.source)))
        elif line.target == before.target:
            found.repeated += 1
        found.longest_target = max(found.longest_target, len(words(line.target)))
        if key < key_before and found.unsorted is None:
            found.unsorted = line.number
        before, key_before = line, key
        yield line


def _widen(found: Validation, values: list[float]) -> None:
    if not found.ranges:
        found.ranges = [(value, value) for value in values]
    for i, value in enumerate(values):
        low, high = found.ranges[i]
        if value < low or value > high:
            found.ranges[i] = min(low, value), max(high, value)


def _check(found: Validation, must_be_sorted: bool) -> None:
    if found.bad_lines:
        lines = f"{found.lines:,} good ones and {found.bad_lines:,} bad ones"
        raise InputError(f"{found.name}: expected only phrase pairs, found {lines}")
    if not found.lines:
        raise FormatError(found.name, None, "at least one line", "none")
    if must_be_sorted and found.unsorted is not None:
        raise FormatError(
            found.name,
            found.unsorted,
            "the order of LC_ALL=C sort, as processPhraseTableMin needs it",
            "a line that belongs before the one above it",
            sorting(found.name),
        )


def _compared(found: Validation) -> str:
    """What the signature beside the table says, if there is one; it must agree."""
    signature = read_signature(found.name)
    if signature is None or not Path(found.name).is_file():
        return "none beside it"
    expected = signature.get("lines"), signature.get("columns")
    if expected != (found.lines, len(found.ranges)):
        raise InputError(
            f"{found.name}: expected {printable(expected[0])} lines and {printable(expected[1])} scores as in its "
            f"signature, found {found.lines} and {len(found.ranges)}"
        )
    return check_signature(found.name)
