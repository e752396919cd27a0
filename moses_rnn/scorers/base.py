"""The seam where the package grows: a score scorer, words in and log-probabilities out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from moses_rnn.table.table_blocks import Pairs

ROUNDING = 1e-3  # a log-probability this far above 0 is float32's rounding; more is a fault
LARGEST = 3e38  # that a float32 can hold, as Moses holds numbers
Values = npt.NDArray[np.float64]  # pairs


@dataclass
class Tally:
    """What a scorer met while it scored some pairs."""

    unknown: int = 0  # pairs with a word, on either side, that it reads as <unk>
    oom_splits: int = 0  # how often work was split because the device's memory ran out


class Scorer(Protocol):
    """A source of feature values, as Moses calls its own; all of them are finite."""

    name: str
    meaning: str  # what the score is, for the signature
    unbounded: bool  # whether the scores are no log-probabilities, and so may be above 0

    def log_probs(self, pairs: Pairs, tally: Tally | None = None) -> Values:
        """Natural logarithms, one of each pair; it depends on that pair alone.

        Words stand with blanks between. Scorers that meet what a tally counts add to it. A ScoreError names the row of
        a pair without a finite score.
        """
