"""A table's scores beside the features that a decoder saw."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from moses_rnn.formats.phrase_table import DEFAULT_FLOOR, log_of

Pair = tuple[bytes, bytes]
Values = tuple[float, ...]

FULL_PRECISION = DEFAULT_FLOOR  # below it, probabilities are denormal as float32
DENORMAL_TOLERANCE = 0.03  # and come back as inexactly as this


@dataclass
class Comparison:
    """What a decoder saw of one kind of dictionary."""

    kind: str
    pairs: int = 0
    values: int = 0
    largest: float = 0.0  # |difference| where the logarithm is above -87
    below: int = 0  # values that are not
    largest_below: float = 0.0
    missing: list[Pair] = field(default_factory=list)
    wrong: list[tuple[Pair, Values, Values]] = field(default_factory=list)  # expected, seen
    failure: str = ""  # what a program of Moses printed before it ended

    @property
    def is_good(self) -> bool:
        """Whether all is as the table says."""
        return bool(self.pairs) and not self.missing and not self.wrong and not self.failure

    def summary(self) -> Iterator[str]:
        """As lines of text."""
        if self.failure:
            yield f"{self.kind:<8} FAILED: {self.failure}"
            return
        below = f"; {self.below:,} at or below -87 (there {self.largest_below:.2g})" if self.below else ""
        verdict = "ok" if self.is_good else "WRONG"
        looked_at = f"{self.pairs:,} pairs, {self.values:,} values"
        yield f"{self.kind:<8} {verdict}: {looked_at}, max |Δ| {self.largest:.2g}{below}"
        for name, pairs in (("not found by the decoder", self.missing), ("seen otherwise", [w[0] for w in self.wrong])):
            if pairs:
                first = b" ||| ".join(pairs[0]).decode("utf-8", "replace")
                yield f"         {len(pairs):,} pairs {name}, first: {first}"
        if self.wrong:
            _, expected, seen = self.wrong[0]
            yield f"         expected {_format(expected)}, seen {_format(seen)}"


def feature_of(score: bytes) -> float:
    """What Moses makes of a score: the logarithm of a float32, not below -100."""
    return log_of(float(np.float32(float(score))))


def compare(
    kind: str,
    table: Iterable[tuple[Pair, Sequence[bytes]]],
    seen: Iterable[tuple[Pair, Values]],
    tolerance: float,
) -> Comparison:
    """Compare a table's scores with a decoder's features.

    Where several lines have one pair, each that was seen must agree with one of them.
    """
    comparison = Comparison(kind)
    expected: dict[Pair, list[Values]] = {}
    for pair, scores in table:
        expected.setdefault(pair, []).append(tuple(map(feature_of, scores)))
    met = set()
    for pair, values in seen:
        if pair not in expected:
            continue  # the decoder made it by other means
        met.add(pair)
        best = min(expected[pair], key=lambda candidate: _distance(candidate, values))
        _count(comparison, pair, best, values, tolerance)
    comparison.pairs = len(met)
    comparison.missing = [pair for pair in expected if pair not in met]
    return comparison


def _distance(expected: Values, seen: Values) -> float:
    if len(expected) != len(seen):
        return math.inf
    return max(abs(a - b) for a, b in zip(expected, seen, strict=True))


def _count(comparison: Comparison, pair: Pair, expected: Values, seen: Values, tolerance: float) -> None:
    good = len(expected) == len(seen)
    for a, b in zip(expected, seen, strict=False):
        comparison.values += 1
        difference = abs(a - b)
        if a > FULL_PRECISION + tolerance:
            comparison.largest = max(comparison.largest, difference)
            good &= difference <= tolerance
        else:
            comparison.below += 1
            comparison.largest_below = max(comparison.largest_below, difference)
            good &= difference <= max(tolerance, 0 if a > FULL_PRECISION - tolerance else DENORMAL_TOLERANCE)
    if not good:
        comparison.wrong.append((pair, expected, seen))


def _format(values: Values) -> str:
    return " ".join(f"{value:.6g}" for value in values)
