"""Validate a phrase table for Moses and this package, as a stream and without scoring."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from moses_rnn.errors import FormatError, InputError, number_of, printable
from moses_rnn.files.streams import Advanced, Meter, read_lines, sort_command
from moses_rnn.table.line_warnings import LineWarnings
from moses_rnn.table.phrase_table import Shape, TableLine, form_of, parse_table
from moses_rnn.table.phrases import words
from moses_rnn.table.signatures import check_signature, read_signature

LINES_BETWEEN_LOOKS = 10_000


@dataclass
class Validation:
    """The contents of a table in figures.

    `ranges` are the lowest and highest value of each score; `unsorted` is the number of the first line that
    ``LC_ALL=C sort`` would put before the line above it.
    """

    name: str
    lines: int = 0
    sources: int = 0  # if the table is sorted
    longest_source: int = 0  # words
    longest_target: int = 0
    repeated: int = 0  # lines with the same source and target as the line above
    unsorted: int | None = None
    ranges: list[tuple[float, float]] = field(default_factory=list)
    bad_lines: int = 0
    factors: tuple[int, int] | None = None  # per source and target word, from the first line; None: plain words
    warnings: list[str] = field(default_factory=list)
    signature: str = ""

    def summary(self) -> Iterator[str]:
        """Yield the lines of a summary."""
        yield f"{self.name}: {number_of(self.lines, 'line')} with {number_of(len(self.ranges), 'score')} each"
        sources = f"{self.sources:,}" if self.unsorted is None else "not counted, because the table is not sorted"
        yield f"  sources: {sources}"
        yield (
            f"  longest source: {number_of(self.longest_source, 'word')}, longest target: "
            f"{number_of(self.longest_target, 'word')}"
        )
        if self.factors:
            yield "  factors of the words, by the first line: {} in sources, {} in targets".format(*self.factors)
        for i, (low, high) in enumerate(self.ranges):
            constant = " (constant: MERT cannot find a weight for it)" if low == high and self.lines > 1 else ""
            yield f"  score {i + 1}: {low:.6g} to {high:.6g}{constant}"
        order = "yes" if self.unsorted is None else f"no, first at line {self.unsorted:,}"
        yield f"  sorted as by LC_ALL=C sort: {order}"
        if self.repeated:
            yield f"  lines that repeat the pair above: {self.repeated:,}"
        yield f"  signature: {self.signature}"


def validate(
    table: str,
    bad_line: Callable[[str], None],
    advanced: Advanced,
    *,
    strict: bool = False,
    must_be_sorted: bool = False,
) -> Validation:
    """Read a whole table and check every line.

    `bad_line` is called with a message for each line that is not a phrase pair. If `strict`, odd lines are errors too;
    if it `must_be_sorted`, so is an order other than that of ``LC_ALL=C sort``.
    """
    validation = Validation(table)

    def reject(_line: bytes, error: FormatError) -> None:
        validation.bad_lines += 1
        bad_line(str(error))

    meter = Meter()
    odd = LineWarnings(table, strict=strict, thorough=True)
    lines = read_lines(table, meter=meter)
    first = next(lines, b"")
    form = form_of(first, table)
    parsed = parse_table(itertools.chain([first] if first else [], lines), table, reject, form)
    for line in _measure(odd.passing(parsed), validation):
        if validation.lines == 1 and form.is_factored:
            validation.factors = Shape.of(line).factors
        if line.number % LINES_BETWEEN_LOOKS == 0:
            advanced(line.number, meter.share)
    validation.warnings = list(odd.messages())
    _check(validation, must_be_sorted)
    validation.signature = _compare_signature(validation)
    return validation


def _measure(lines: Iterable[TableLine], validation: Validation) -> Iterator[TableLine]:
    before: TableLine | None = None
    key_before = b""
    for line in lines:
        key = line.line.removesuffix(b"\n")
        validation.lines += 1
        values = [float(score) for score in words(line.scores)]
        ranges = validation.ranges or [(value, value) for value in values]
        validation.ranges = [(min(low, v), max(high, v)) for (low, high), v in zip(ranges, values, strict=True)]
        if before is None or line.source != before.source:
            validation.sources += 1
            validation.longest_source = max(validation.longest_source, len(words(line.source)))
        elif line.target == before.target:
            validation.repeated += 1
        validation.longest_target = max(validation.longest_target, len(words(line.target)))
        if key < key_before and validation.unsorted is None:
            validation.unsorted = line.number
        before, key_before = line, key
        yield line


def _check(validation: Validation, must_be_sorted: bool) -> None:
    if validation.bad_lines:
        lines = f"{validation.lines:,} good ones and {validation.bad_lines:,} bad ones"
        raise InputError(f"{validation.name}: expected only phrase pairs, found {lines}")
    if not validation.lines:
        raise FormatError(validation.name, None, "at least one line", "none")
    if must_be_sorted and validation.unsorted is not None:
        raise FormatError(
            validation.name,
            validation.unsorted,
            "the order of LC_ALL=C sort, as processPhraseTableMin needs it",
            "a line that belongs before the one above it",
            sort_command(validation.name),
        )


def _compare_signature(validation: Validation) -> str:
    """Describe the signature beside the table, if any; raise InputError if it does not match."""
    signature = read_signature(validation.name)
    if not signature or not Path(validation.name).is_file():
        return "none beside it"
    expected = signature.record.get("lines"), signature.record.get("columns")
    if expected != (validation.lines, len(validation.ranges)):
        raise InputError(
            f"{validation.name}: expected {printable(expected[0])} lines and {printable(expected[1])} scores as in its "
            f"signature, found {validation.lines} and {len(validation.ranges)}"
        )
    return check_signature(validation.name)
