"""Generate targets word by word, by sampling or beam search, for many sources together.

Ancestral sampling draws each word from p(y_t | y_<t, e), up to ``</s>`` (section 4.3 of the paper). All samples of all
sources advance together, and those with the same prefix share one state and one normalisation.

Beam search finds the targets with the highest log p(f|e), or the highest log p(f|e) per word. Each step considers the
ends of all live prefixes, and keeps the likeliest `width` extensions of each source; see the two rankings.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from moses_rnn.errors import ScoreError
from moses_rnn.networks.batches import flatten, take_rows
from moses_rnn.networks.steps import Candidates, Encoded, Prefixes, Stepper, row_blocks
from moses_rnn.networks.vocabulary import END_ID, UNKNOWN_ID, Phrase
from moses_rnn.translation.requests import LengthScore

MAX_WORDS = 50  # a table's phrases have up to seven; endless output is no phrase
PREFIXES_AT_ONCE = 8192  # with states in memory
PREFIXES_NEAR = 1024  # the same on a CPU: enough for efficient products


@dataclass(frozen=True)
class GeneratedTarget:
    """A target phrase that a network wrote, up to the length limit.

    `log_prob` is the model's natural log p(words, ``</s>`` | source). If the phrase has not `ended`, it is that of the
    words alone, an upper bound for all phrases with this prefix.
    """

    words: tuple[int, ...]  # ids without </s>
    log_prob: float
    ended: bool


@torch.inference_mode()
def read_sources(stepper: Stepper, sources: Sequence[Phrase]) -> Encoded:
    """Encode each source; equal ones once."""
    encoded, row_of = stepper.encode(*flatten(sources))
    return take_rows(encoded, torch.from_numpy(row_of).to(stepper.device))


class TargetGenerator(ABC):
    """Generates targets of sources with a network, in the precision of its products.

    `at_once` is how many sources to give it together, as each has `prefixes_of_each` live prefixes.
    """

    def __init__(self, stepper: Stepper, prefixes_of_each: int) -> None:
        self._stepper = stepper
        self._vocabulary_size = stepper.vocabulary_size
        prefixes = PREFIXES_NEAR if stepper.device.type == "cpu" else PREFIXES_AT_ONCE
        self.at_once = max(prefixes // prefixes_of_each, 1)

    @abstractmethod
    def __call__(self, sources: Sequence[Phrase]) -> list[list[GeneratedTarget]]:
        """Return the targets of each source, given as ids without end symbols; a ScoreError has the source's row."""

    def _next_log_probs(self, encoded: Encoded, prefixes: Prefixes, columns: Candidates | None = None) -> Tensor:
        """See `Stepper`; values may be minus infinity for impossible words."""
        log_probs = self._stepper.next_log_probs(encoded, prefixes, columns)
        wrong = log_probs[:, END_ID].isnan()  # as are all words of a prefix if one is: they were normalised together
        if wrong.any():
            row = int(prefixes.sources[wrong][0])
            raise ScoreError("expected a log-probability of every word that may follow, found nan", row)
        return log_probs


@dataclass(frozen=True)
class SamplingConfig:
    """Options of sampling; reported log-probabilities are always the model's."""

    samples: int = 50  # of each source
    temperature: float = 1.0  # words are drawn from p^(1/temperature), normalised
    seed: int = 1
    max_words: int = MAX_WORDS  # longer samples have not ended
    allow_unknown: bool = True  # <unk> is a word of the model like any other


class Sampler(TargetGenerator):
    """Draws target phrases.

    A source's samples depend only on the seed, the source and the configuration, not on other sources. This needs
    float64 products: float32 products of other sizes round differently, and one in about ten thousand samples then
    crosses the boundary between two words.

    Each source gets `config.samples` samples in the order of drawing; equal sources get equal samples. Samples without
    ``</s>`` among `max_words` + 1 words have not `ended`.
    """

    def __init__(self, stepper: Stepper, config: SamplingConfig) -> None:
        super().__init__(stepper, config.samples)
        self.config = config

    @torch.inference_mode()
    def __call__(self, sources: Sequence[Phrase]) -> list[list[GeneratedTarget]]:
        """See `TargetGenerator`."""
        steps, device = self.config.max_words + 1, self._stepper.device  # one more for </s>
        random = torch.cat([self._random(source) for source in sources], 1).to(device)  # steps × samples
        words = torch.full(random.shape, END_ID, device=device)
        totals = torch.zeros(random.shape[1], dtype=torch.float64, device=device)
        encoded = read_sources(self._stepper, sources)
        prefixes = self._stepper.start(encoded)
        live = torch.arange(random.shape[1], device=device)  # samples that have not ended
        at = live // self.config.samples  # current prefix of each
        for step in range(steps):
            drawn, log_p = self._draw(encoded, prefixes, at, random[step, live])
            words[step, live] = drawn
            continues = drawn != END_ID
            if step == self.config.max_words:  # do not count the extra word
                log_p = log_p.masked_fill(continues, 0.0)
            totals[live] += log_p
            live = live[continues]
            distinct, at = torch.unique(at[continues] * self._vocabulary_size + drawn[continues], return_inverse=True)
            if step == self.config.max_words or not len(live):
                break
            prefixes = self._stepper.step(
                encoded, prefixes, distinct // self._vocabulary_size, distinct % self._vocabulary_size
            )
        samples = [self._hypothesis(*sample) for sample in zip(words.T.tolist(), totals.tolist(), strict=True)]
        return [samples[first : first + self.config.samples] for first in range(0, len(samples), self.config.samples)]

    def _random(self, source: Phrase) -> Tensor:
        """Return random numbers from 0 to below 1 for a source's samples; steps × samples, float64.

        They are numpy's, equal on every device: a torch generator uses only 32 bits of its seed on a CPU, too few for
        a seed and a phrase.
        """
        random = np.random.default_rng([self.config.seed, *source, END_ID])
        return torch.from_numpy(random.random((self.config.max_words + 1, self.config.samples)))

    def _draw(self, encoded: Encoded, prefixes: Prefixes, at: Tensor, random: Tensor) -> tuple[Tensor, Tensor]:
        """Draw the next word of each sample; return it and its log p after the prefix; samples."""
        words, log_probs = torch.empty_like(at), torch.empty_like(random)
        for rows in row_blocks(len(prefixes.sources), self._vocabulary_size, self._stepper.device):
            log_p = self._next_log_probs(encoded, take_rows(prefixes, rows))
            here = (at >= rows.start) & (at < rows.stop)
            row = at[here] - rows.start
            words[here] = first_above(self._weights(log_p).cumsum(1), row, random[here])
            log_probs[here] = log_p[row, words[here]]
        return words, log_probs

    def _weights(self, log_p: Tensor) -> Tensor:
        """Return sampling weights: p^(1/temperature), relative to the likeliest allowed word."""
        if not self.config.allow_unknown:
            log_p = log_p.clone()
            log_p[:, UNKNOWN_ID] = -torch.inf
        return ((log_p - log_p.amax(1, keepdim=True)) / self.config.temperature).exp()

    def _hypothesis(self, words: list[int], log_prob: float) -> GeneratedTarget:
        before_end = tuple(takewhile(lambda word: word != END_ID, words))
        return GeneratedTarget(before_end[: self.config.max_words], log_prob, len(before_end) <= self.config.max_words)


def first_above(cumulated: Tensor, rows: Tensor, random: Tensor) -> Tensor:
    """Return the first word at which the cumulated weight (prefixes × K) exceeds a share of the row's total; samples.

    This is a binary search: torch.searchsorted would need one row per sample, or equally many samples in each row.
    `rows` are the samples' prefixes, `random` their shares, from 0 to below 1.
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


class LivePrefixes(NamedTuple):
    """Prefixes that have not ended; one row each."""

    prefixes: Prefixes
    words: Tensor  # rows × step
    totals: Tensor  # log p of the words


class Extensions(NamedTuple):
    """Prefixes extended by one word."""

    rows: Tensor  # row of the prefix without the word
    words: Tensor
    totals: Tensor


class BySum:
    """Ranks by log p, the sum over words and ``</s>``.

    It considers every end of a live prefix. No word makes a target likelier, so a source is done once none of its live
    prefixes exceeds the worst of the `best` targets, or `least_log_prob`.
    """

    def __init__(self, sources: int, width: int, best: int, least_log_prob: float = -math.inf) -> None:
        self._width, self._best = width, best
        self._least = math.nextafter(least_log_prob, -math.inf)
        self._ended: list[list[tuple[float, tuple[int, ...]]]] = [[] for _ in range(sources)]  # the best, best first

    def choose(self, ends: Tensor, extensions: Extensions, live: LivePrefixes) -> Extensions:
        """Record the targets that end here; return the extensions that continue, by source, best first.

        `ends` is log p of each live prefix with ``</s>``; `extensions` are the likeliest possible ones of each.
        """
        good = (ends > self._bounds(ends.device)[live.prefixes.sources]).nonzero().flatten()
        for source, target, log_prob in _listed(good, ends, live):
            ended = self._ended[source]
            ended.append((log_prob, target))
            ended.sort(reverse=True)
            del ended[self._best :]
        sources = live.prefixes.sources[extensions.rows]
        hopeful = (extensions.totals > self._bounds(ends.device)[sources]).nonzero().flatten()
        return take_rows(extensions, hopeful[best_of_each(extensions.totals[hopeful], sources[hopeful], self._width)])

    def _bounds(self, device: torch.device) -> Tensor:
        """Return the log p that a further target of each source must exceed."""
        bounds = [ended[-1][0] if len(ended) == self._best else self._least for ended in self._ended]
        return torch.tensor(bounds, dtype=torch.float64, device=device)

    def in_order(self, source: int) -> list[GeneratedTarget]:
        """Return the best ended targets of a source, best first."""
        return [GeneratedTarget(words, log_prob, ended=True) for log_prob, words in self._ended[source]]


class ByMean:
    """Ranks by log p / (T + 1) of T words and ``</s>``, as RNNsearch's released code does (GroundHog, sample.py).

    ``</s>`` competes with other words for places in the beam, and an ended target keeps its place: the width of its
    source shrinks by one, and the search ends at 0. The result is not guaranteed to be the best. Unlike the released
    code, there is no forced minimum length.
    """

    def __init__(self, sources: int, width: int, best: int, device: torch.device) -> None:
        self._best = best
        self._widths = torch.full((sources,), width, device=device)
        self._ended: list[list[GeneratedTarget]] = [[] for _ in range(sources)]

    def choose(self, ends: Tensor, extensions: Extensions, live: LivePrefixes) -> Extensions:
        """See `BySum.choose`."""
        totals = torch.cat([ends, extensions.totals])
        sources = torch.cat([live.prefixes.sources, live.prefixes.sources[extensions.rows]])
        possible = (totals > -torch.inf).nonzero().flatten()
        chosen = possible[best_of_each(totals[possible], sources[possible], self._widths[sources[possible]])]
        ending = chosen[chosen < len(ends)]
        self._widths -= torch.bincount(sources[ending], minlength=len(self._widths))
        for source, words, log_prob in _listed(ending, ends, live):
            self._ended[source].append(GeneratedTarget(words, log_prob, ended=True))
        return take_rows(extensions, chosen[chosen >= len(ends)] - len(ends))

    def in_order(self, source: int) -> list[GeneratedTarget]:
        """See `BySum.in_order`."""
        by_mean = sorted(self._ended[source], key=lambda h: (h.log_prob / (len(h.words) + 1), h.words), reverse=True)
        return by_mean[: self._best]


def _listed(rows: Tensor, ends: Tensor, live: LivePrefixes) -> list[tuple[int, tuple[int, ...], float]]:
    """Return source, words and log p of the targets formed by ending live prefixes."""
    sources, words, log_probs = (tensor[rows].tolist() for tensor in (live.prefixes.sources, live.words, ends))
    return list(zip(sources, map(tuple, words), log_probs, strict=True))


def best_of_each(totals: Tensor, sources: Tensor, count: int | Tensor) -> Tensor:
    """Return the indices of each source's highest totals, best first, by source.

    `count` is the number to take per source, or a tensor with that number for each total.
    """
    order = totals.argsort(descending=True, stable=True)
    order = order[sources[order].argsort(stable=True)]
    grouped = sources[order]
    rank = torch.arange(len(order), device=order.device) - torch.searchsorted(grouped, grouped)
    return order[rank < (count[order] if isinstance(count, Tensor) else count)]


@dataclass(frozen=True)
class BeamConfig:
    """Options of beam search."""

    width: int  # live prefixes per source
    best: int = 1  # targets wanted
    max_words: int = MAX_WORDS
    allow_unknown: bool = True  # <unk> is a word of the model like any other
    words_per_source_word: int = 0  # length limit per source word, counting </s>; 0: only `max_words`
    length_score: LengthScore = "sum"  # or "mean": log p / (T + 1) decides; see `ByMean`
    unknown_tokens: int = 0  # tokens after </s> that replace unknown words, like <unk>; see `models.rare_words`

    def most_words(self, source: Phrase) -> int:
        """Return the maximum target length for a source."""
        return self.words_per_source_word * (len(source) + 1) or self.max_words


class BeamSearch(TargetGenerator):
    """Finds likely target phrases by beam search.

    It finds the best targets it considers: only a beam that drops no prefix surely finds the best of all.
    Each source gets at most `config.best` targets, best first. If the length limit ended a search that might have found
    better ones, the likeliest remaining prefix follows, which has not `ended`. With the ranking by sum, prefixes below
    `least_log_prob` are dropped.
    """

    def __init__(self, stepper: Stepper, config: BeamConfig, *, least_log_prob: float = -math.inf) -> None:
        super().__init__(stepper, config.width)
        self.config = config
        self._least_log_prob = least_log_prob

    @torch.inference_mode()
    def __call__(self, sources: Sequence[Phrase], columns: Candidates | None = None) -> list[list[GeneratedTarget]]:
        """Return the targets of each source; `columns` restricts words and normalisation to candidates."""
        encoded = read_sources(self._stepper, sources)
        live = LivePrefixes(
            self._stepper.start(encoded),
            words=torch.empty(len(sources), 0, dtype=torch.int64, device=self._stepper.device),
            totals=torch.zeros(len(sources), dtype=torch.float64, device=self._stepper.device),
        )
        ranking = self._ranking(len(sources))
        limits = [self.config.most_words(source) for source in sources]
        left: list[list[GeneratedTarget]] = [[] for _ in sources]  # the likeliest prefix stopped by a limit, if any
        while True:
            extensions = ranking.choose(*self._judge(encoded, live, columns), live)
            if live.words.shape[1] in limits:
                extensions = self._stop(extensions, live, limits, left)
            if not len(extensions.rows):
                return [ranking.in_order(source) + of_source for source, of_source in enumerate(left)]
            prefixes = self._stepper.step(encoded, live.prefixes, extensions.rows, extensions.words)
            words = torch.cat([live.words[extensions.rows], extensions.words[:, None]], 1)
            live = LivePrefixes(prefixes, words, extensions.totals)

    def _stop(
        self, extensions: Extensions, live: LivePrefixes, limits: Sequence[int], left: Sequence[list[GeneratedTarget]]
    ) -> Extensions:
        """Return the extensions within the length limit; keep the likeliest other prefix of each source."""
        at_limit = torch.tensor(limits, device=self._stepper.device) == live.words.shape[1]
        stopped = at_limit[live.prefixes.sources[extensions.rows]]
        for row in extensions.rows[stopped].tolist():
            of_source = left[int(live.prefixes.sources[row])]
            if not of_source:  # they come best first
                of_source.append(GeneratedTarget(tuple(live.words[row].tolist()), float(live.totals[row]), ended=False))
        return take_rows(extensions, (~stopped).nonzero().flatten())

    def _ranking(self, sources: int) -> BySum | ByMean:
        if self.config.length_score == "mean":
            return ByMean(sources, self.config.width, self.config.best, self._stepper.device)
        return BySum(sources, self.config.width, self.config.best, self._least_log_prob)

    def _judge(self, encoded: Encoded, live: LivePrefixes, columns: Candidates | None) -> tuple[Tensor, Extensions]:
        """Return log p of each live prefix with ``</s>``, and enough of its likeliest continuations.

        Both special words and the unknown tokens are always among the columns, at the same positions as in all words.
        """
        ends, parts = [], []
        count = self._vocabulary_size if columns is None else len(columns.words)
        for rows in row_blocks(len(live.totals), count, self._stepper.device):
            log_probs = self._next_log_probs(encoded, take_rows(live.prefixes, rows), columns)
            totals = live.totals[rows, None] + log_probs
            ends.append(totals[:, END_ID].clone())
            totals[:, END_ID] = -torch.inf
            if not self.config.allow_unknown:
                totals[:, UNKNOWN_ID] = -torch.inf
                totals[:, END_ID + 1 : END_ID + 1 + self.config.unknown_tokens] = -torch.inf
            best, words = totals.topk(min(self.config.width, count), dim=1)
            words = words if columns is None else columns.words[words]
            row, _ = (best > -torch.inf).nonzero(as_tuple=True)
            parts.append(Extensions(row + rows.start, words[best > -torch.inf], best[best > -torch.inf]))
        return torch.cat(ends), Extensions(*(torch.cat(tensors) for tensors in zip(*parts, strict=True)))
