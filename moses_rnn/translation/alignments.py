"""Where a network with attention looked while it wrote: α of a chosen target, by a second, forced pass over it.

N source words with the end symbol, T target words.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from moses_rnn.networks.inspection import finite
from moses_rnn.networks.steps import Stepper, Terms
from moses_rnn.networks.vocabulary import Phrase
from moses_rnn.translation.hypotheses import PREFIXES_AT_ONCE, Hypothesis, read_sources

Alpha = npt.NDArray[np.float32]  # T, and one more for the </s> of what has ended, × N
NO_ALPHA: Alpha = np.zeros((0, 0), np.float32)  # of an empty line
NUMBERS_AT_ONCE = 1 << 22  # of α


def has_attention(stepper: Stepper[Any, Any]) -> bool:
    """Whether a network says where it looks."""
    terms = read_sources(stepper, [[]])
    return stepper.alignment(terms, stepper.start(terms)) is not None


def align(stepper: Stepper[Any, Any], sources: Sequence[Phrase], hypotheses: Sequence[Hypothesis]) -> Iterator[Alpha]:
    """α of each target that was written for the source beside it; sources have no end symbols and may repeat."""
    if hypotheses:
        largest = max(map(_rows, hypotheses)) * (max(map(len, sources)) + 1)
        count = min(max(NUMBERS_AT_ONCE // max(largest, 1), 1), PREFIXES_AT_ONCE)
        for first in range(0, len(hypotheses), count):
            yield from _Forced(stepper, sources[first : first + count], hypotheses[first : first + count]).alphas()


def _rows(hypothesis: Hypothesis) -> int:
    """How many words were predicted, the end symbol among them."""
    return len(hypothesis.words) + hypothesis.ended


class _Forced:
    """A pass over the words of some targets, all together; each distinct source is read once."""

    def __init__(self, stepper: Stepper[Any, Any], sources: Sequence[Phrase], hypotheses: Sequence[Hypothesis]) -> None:
        self._stepper = stepper
        row_of = {source: row for row, source in enumerate(dict.fromkeys(map(tuple, sources)))}
        self._sources = list(row_of)
        self._source_of = [row_of[tuple(source)] for source in sources]
        self._rows = list(map(_rows, hypotheses))
        padded = [[*h.words, *[0] * (max(self._rows) - len(h.words))] for h in hypotheses]
        self._words = torch.tensor(padded, dtype=torch.int64, device=stepper.device)

    @torch.inference_mode()
    def alphas(self) -> Iterator[Alpha]:
        """Of each target."""
        terms = read_sources(self._stepper, self._sources)
        columns = max(map(len, self._sources)) + 1
        whole = np.zeros((len(self._rows), max(self._rows), columns), np.float32)
        for step, (targets, looks) in enumerate(self._steps(terms)):
            whole[targets.cpu().numpy(), step] = finite(looks).float().cpu().numpy()
        for alpha, rows, source in zip(whole, self._rows, self._source_of, strict=True):
            yield alpha[:rows, : len(self._sources[source]) + 1].copy()

    def _steps(self, terms: Terms) -> Iterator[tuple[Tensor, Tensor]]:
        """The targets that have a word at each step, and α of it: targets × N."""
        device = self._stepper.device
        prefixes = self._stepper.start(terms)
        rows = torch.tensor(self._rows, device=device)
        at = torch.tensor(self._source_of, device=device)  # the prefix of each target
        targets = torch.arange(len(rows), device=device)
        for step in range(max(self._rows)):
            alpha = self._stepper.alignment(terms, prefixes)
            assert alpha is not None
            yield targets, alpha[at]
            goes_on = rows[targets] > step + 1
            targets, at = targets[goes_on], at[goes_on]
            if len(targets):
                prefixes = self._stepper.step(terms, prefixes, at, self._words[targets, step])
                at = torch.arange(len(targets), device=device)


def links(alpha: Alpha, target_words: int) -> tuple[int, ...]:
    """For each of T target words the source word that it looks at most, from 0; end symbols are left out."""
    return tuple(alpha[:target_words, :-1].argmax(1).tolist())


def format_alignment(number: int, source: Sequence[bytes], target: Sequence[bytes], alpha: Alpha) -> bytes:
    """A line of JSON: α with the words that it is of, rounded to four digits; the line's number is from 1.

    Words come without end symbols, which are the last column of α and the last row if there is one row more than words.
    """
    record = {
        "line": number,
        "source": [word.decode("utf-8", "surrogateescape") for word in source],
        "target": [word.decode("utf-8", "surrogateescape") for word in target],
        "alpha": np.round(alpha.astype(np.float64), 4).tolist(),
    }
    return json.dumps(record).encode() + b"\n"
