"""Ancestral sampling: each target word is drawn from p(y_t | y_<t, e), up to ``</s>`` (section 4.3 of the paper).

All samples of all sources advance together, and those that begin with the same words share one state and one
normalisation. K words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np
import torch
from torch import Tensor

from moses_rnn.networks.steps import Prefixes, Stepper, Terms, row_blocks
from moses_rnn.networks.vocabulary import END_ID, UNKNOWN_ID, Phrase
from moses_rnn.translation.hypotheses import MAX_WORDS, Hypothesis, Writer, read_sources


@dataclass(frozen=True)
class SamplingConfig:
    """How to draw; none of it changes the log-probability that a sample is reported with, which is the model's."""

    samples: int = 50  # of each source
    temperature: float = 1.0  # words are drawn from p^(1/temperature), normalised
    seed: int = 1
    max_words: int = MAX_WORDS  # what has more has not ended
    allow_unknown: bool = True  # <unk> is a word of the model like any other

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise ValueError(f"expected a temperature above 0, found {self.temperature}")


class Sampler(Writer):
    """Draws target phrases.

    A source's samples depend on the seed, the source and the configuration, not on what else is sampled with it. Take
    products in float64 for that: float32 products of other sizes are rounded otherwise, and one of some ten thousand
    samples then falls on the other side of the border between two words.

    Of each source it gives `config.samples`, in the order in which they were drawn; equal sources get equal samples.
    Those without ``</s>`` among `max_words` + 1 words have not `ended`.
    """

    def __init__(self, stepper: Stepper[Any, Any], config: SamplingConfig) -> None:
        super().__init__(stepper, config.samples)
        self.config = config

    @torch.inference_mode()
    def together(self, sources: Sequence[Phrase]) -> list[list[Hypothesis]]:
        """See `Writer`."""
        steps, device = self.config.max_words + 1, self._stepper.device  # one more for </s>
        random = torch.cat([self._random(source) for source in sources], 1).to(device)  # steps × samples
        words = torch.full(random.shape, END_ID, device=device)
        totals = torch.zeros(random.shape[1], dtype=torch.float64, device=device)
        terms = read_sources(self._stepper, sources)
        prefixes = self._stepper.start(terms)
        live = torch.arange(random.shape[1], device=device)  # samples that have not ended
        at = live // self.config.samples  # the prefix that each has come to
        for step in range(steps):
            drawn, log_p = self._draw(terms, prefixes, at, random[step, live])
            words[step, live] = drawn
            goes_on = drawn != END_ID
            if step == self.config.max_words:  # a word too many is not counted
                log_p = log_p.masked_fill(goes_on, 0.0)
            totals[live] += log_p
            live = live[goes_on]
            distinct, at = torch.unique(at[goes_on] * self._words + drawn[goes_on], return_inverse=True)
            if step == self.config.max_words or not len(live):
                break
            prefixes = self._stepper.step(terms, prefixes, distinct // self._words, distinct % self._words)
        samples = [self._hypothesis(*sample) for sample in zip(words.T.tolist(), totals.tolist(), strict=True)]
        return [samples[first : first + self.config.samples] for first in range(0, len(samples), self.config.samples)]

    def _random(self, source: Phrase) -> Tensor:
        """Numbers from 0 to below 1 that decide a source's samples; steps × samples, float64.

        They are numpy's, the same for every device: a torch generator heeds 32 bits of its seed on a CPU, too few for a
        seed and a phrase.
        """
        random = np.random.default_rng([self.config.seed, *source, END_ID])
        return torch.from_numpy(random.random((self.config.max_words + 1, self.config.samples)))

    def _draw(self, terms: Terms, prefixes: Prefixes, at: Tensor, random: Tensor) -> tuple[Tensor, Tensor]:
        """The next word of each sample and its log p after the prefix; samples."""
        words, log_probs = torch.empty_like(at), torch.empty_like(random)
        for rows in row_blocks(len(prefixes.sources), self._words, self._stepper.device):
            log_p = self._next_log_probs(terms, prefixes.take(rows))
            here = (at >= rows.start) & (at < rows.stop)
            row = at[here] - rows.start
            words[here] = first_above(self._weights(log_p).cumsum(1), row, random[here])
            log_probs[here] = log_p[row, words[here]]
        return words, log_probs

    def _weights(self, log_p: Tensor) -> Tensor:
        """What words are drawn by: p^(1/temperature) over that of the likeliest word that may be drawn."""
        if not self.config.allow_unknown:
            log_p = log_p.clone()
            log_p[:, UNKNOWN_ID] = -torch.inf
        return ((log_p - log_p.amax(1, keepdim=True)) / self.config.temperature).exp()

    def _hypothesis(self, words: list[int], log_prob: float) -> Hypothesis:
        before_end = tuple(takewhile(lambda word: word != END_ID, words))
        return Hypothesis(before_end[: self.config.max_words], log_prob, len(before_end) <= self.config.max_words)


def first_above(cumulated: Tensor, rows: Tensor, random: Tensor) -> Tensor:
    """The first word whose cumulated weight exceeds a share of the row's whole weight.

    A binary search: torch.searchsorted would need a row for each sample, or as many samples in each row.

    Args:
        cumulated: weights, summed up from the first word on; prefixes × K.
        rows: the prefix of each sample; samples.
        random: shares, from 0 to below 1; samples.
    """
    wanted = random * cumulated[rows, -1]
    low = torch.zeros_like(rows)
    high = torch.full_like(rows, cumulated.shape[1] - 1)
    for _ in range(cumulated.shape[1].bit_length()):
        middle = (low + high) // 2
        above = cumulated[rows, middle] > wanted
        high = torch.where(above, middle, high)
        low = torch.where(above, low, torch.minimum(middle + 1, high))
    return high
