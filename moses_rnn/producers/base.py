"""The seam where the package grows: a score producer, words in and log-probabilities out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch

from moses_rnn import native
from moses_rnn.errors import ScoreError, shown
from moses_rnn.formats.table_blocks import Pairs
from moses_rnn.networks.batches import Lengths
from moses_rnn.networks.vocabulary import UNKNOWN_ID, Ids

Scores = npt.NDArray[np.float64]  # pairs × num_scores
ROUNDING = 1e-3  # a log-probability this far above 0 is float32's rounding; more is a fault
LARGEST = 3e38  # that a float32 can hold, as Moses holds numbers
Values = npt.NDArray[np.float64]  # pairs


PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp64": torch.float64}


@dataclass(frozen=True)
class Compute:
    """Where and how a producer's network computes.

    Raises:
        ValueError: there is no such device here, or no such precision.
    """

    device: str = "cpu"
    precision: str = "fp32"  # of matrix products, one of PRECISIONS, or of those of the native core
    native: bool = False  # whether the native core computes, not torch
    floors_long: bool = False  # whether pairs that a network has no room for score the floor, and are not refused

    def __post_init__(self) -> None:
        precisions = native.PRECISIONS if self.native else tuple(PRECISIONS)
        if self.precision not in precisions:
            raise ValueError(f"expected a precision of {', '.join(precisions)}, found {self.precision!r}")
        if torch.device(self.device).type == "cuda" and not torch.cuda.is_available():
            raise ValueError(f"expected a device that torch can use here, found {self.device!r}")

    @property
    def dtype(self) -> torch.dtype:
        """The type of matrix products."""
        return PRECISIONS[self.precision]


HERE = Compute()  # on the processor, in float32, by torch: the reference


@dataclass(frozen=True)
class Wanted:
    """What a user wants of a `Compute`; None: what suits."""

    device: str = "cpu"
    precision: str | None = None  # or "auto": bf16 where it is faster and the network large
    floors_long: bool = False


@dataclass
class Tally:
    """What a producer met while it scored some pairs."""

    unknown: int = 0  # pairs with a word, on either side, that it reads as <unk>
    halvings: int = 0  # how often work was split because the device's memory ran out


class ScoreProducer(Protocol):
    """A source of feature values, as Moses calls its own.

    One whose scores are no log-probabilities, and so may be above 0, has an attribute `unbounded` that is true. All are
    finite, see `check_scores`.
    """

    name: str
    num_scores: int
    meaning: str  # what the score is, for the signature

    def log_probs(self, pairs: Pairs, tally: Tally | None = None) -> Scores:
        """Natural logarithms; pairs × num_scores. A pair's scores depend on that pair alone.

        Args:
            pairs: words with blanks between.
            tally: is added to, by producers that meet what it counts.

        Raises:
            ScoreError: a pair has no such score.
        """


def is_unbounded(producer: ScoreProducer) -> bool:
    """Whether its scores may be above 0."""
    return bool(getattr(producer, "unbounded", False))


def check_scores(producer: ScoreProducer, scores: Scores, pairs: Pairs) -> None:
    """Refuse scores that are not finite, or are above 0 though they are to be log-probabilities.

    Raises:
        ScoreError: one is; the pair is named.
    """
    unbounded = is_unbounded(producer)
    good = (scores > -LARGEST) & (scores < (LARGEST if unbounded else ROUNDING))
    if not good.all():
        row = int(np.argmin(good.all(1)))
        expected = "a finite number" if unbounded else "a log-probability"
        pair = shown(b" ||| ".join((pairs.sources[row], pairs.targets[row])))
        raise ScoreError(f"{producer.name}: expected {expected}, found {scores[row].min()} for {pair}", row)


class Description(NamedTuple):
    """A score's name, what it is, and whether it may be above 0."""

    name: str
    meaning: str
    unbounded: bool = False


def unknown_words(ids: Ids, lengths: Lengths) -> npt.NDArray[np.int64]:
    """How many words of each phrase are outside the shortlist."""
    unknown = np.append(0, np.cumsum(ids == UNKNOWN_ID))
    ends = np.cumsum(lengths)
    counts: npt.NDArray[np.int64] = unknown[ends] - unknown[ends - lengths]
    return counts
