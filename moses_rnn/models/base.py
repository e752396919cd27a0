"""The interface for new scores: a scorer takes words and returns log-probabilities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from moses_rnn.errors import PairError, ScoreError, placing
from moses_rnn.networks.batches import Values
from moses_rnn.table.table_blocks import Pairs

Scores = TypeVar("Scores")

ROUNDING = 1e-3  # a log-probability up to this is float32 rounding; above it is an error
LARGEST_SCORE = 3e38  # near the limit of float32, which Moses uses


@dataclass
class Tally:
    """Counts of events while a scorer scores pairs."""

    unknown: int = 0  # pairs with a word on either side that is read as <unk>
    oom_splits: int = 0  # how often work was split because the device ran out of memory


def one_at_fault(count: int, can_score: Callable[[slice], bool]) -> int:
    """Find by halving one of `count` items that cannot be scored; the last one, if they fail only together."""
    first, end = 0, count
    while end - first > 1:
        middle = (first + end) // 2
        first, end = (middle, end) if can_score(slice(first, middle)) else (first, middle)
    return first


def score_named(count: int, score: Callable[[slice], Scores], name: Callable[[int], str]) -> Scores:
    """Score `count` pairs, any slice of which `score` scores; an error of one pair begins with its name."""

    def can_score(part: slice) -> bool:
        try:
            score(part)
        except PairError:
            return False
        except ScoreError:  # another fault
            return True
        return True

    try:
        with placing(name):
            return score(slice(count))
    except PairError as error:
        error.message = f"{name(one_at_fault(count, can_score))}: {error.message}"
        raise


class Scorer(Protocol):
    """A source of finite feature values."""

    name: str
    meaning: str  # description of the score for the signature
    unbounded: bool  # whether scores are not log-probabilities and may be above 0

    def log_probs(self, pairs: Pairs, tally: Tally | None = None) -> Values:
        """Return one natural log score per pair, which depends on that pair alone.

        Words are separated by blanks. Scorers add their counts to `tally`. A ScoreError names the row of a pair without
        a finite score.
        """
