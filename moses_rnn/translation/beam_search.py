"""Beam search for the targets of the highest log p(f|e): the sum over words and ``</s>``, without any normalisation.

At every step the ends of all live prefixes are judged, and the likeliest `width` longer prefixes of each source go on.
Since no word makes a phrase likelier, a source is done as soon as none of its live prefixes is above the worst of the
targets that are wanted. K words.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from moses_rnn.inference.steps import Prefixes, Stepper, Terms, row_blocks
from moses_rnn.models.vocabulary import END_ID, UNKNOWN_ID, Phrase
from moses_rnn.translation.hypotheses import MAX_WORDS, Hypothesis, Writer, read_sources


@dataclass(frozen=True)
class BeamConfig:
    """How far to search, and for how many targets."""

    width: int = 50  # live prefixes of a source
    best: int = 1  # targets wanted
    max_words: int = MAX_WORDS
    allow_unknown: bool = True  # <unk> is a word of the model like any other


class BeamSearch(Writer):
    """Finds likely target phrases.

    What it finds is the best of what it looked at: only a beam that loses no prefix is sure to find the best of all.
    Of each source it gives at most `config.best` targets, best first. Where the length limit ended a search that might
    have found better ones, the likeliest of the prefixes it was left with follows, which has not `ended`.

    Args:
        stepper: the network; its type of products decides the precision.
        config: how far to search.
    """

    def __init__(self, stepper: Stepper[Any, Any], config: BeamConfig) -> None:
        super().__init__(stepper, config.width)
        self.config = config

    @torch.inference_mode()
    def _block(self, sources: Sequence[Phrase]) -> list[list[Hypothesis]]:
        terms = read_sources(self._stepper, sources)
        live = _Live(
            self._stepper.start(terms),
            words=torch.empty(len(sources), 0, dtype=torch.int64, device=self._stepper.device),
            totals=torch.zeros(len(sources), dtype=torch.float64, device=self._stepper.device),
        )
        ended = [_Best(self.config.best) for _ in sources]
        for step in range(self.config.max_words + 1):
            ends, longer = self._judge(terms, live)
            self._keep(ends, live, ended)
            longer = self._narrow(longer, live, ended)
            if step == self.config.max_words or not len(longer.rows):
                break
            prefixes = self._stepper.step(terms, live.prefixes, longer.rows, longer.words)
            live = _Live(prefixes, torch.cat([live.words[longer.rows], longer.words[:, None]], 1), longer.totals)
        return [best.in_order() + rest for best, rest in zip(ended, self._left(longer, live, len(ended)), strict=True)]

    def _judge(self, terms: Terms, live: _Live) -> tuple[Tensor, _Longer]:
        """log p of each live prefix with ``</s>``, and its likeliest continuations, of which none loses one wanted."""
        ends, parts = [], []
        for rows in row_blocks(len(live.totals), self._words, self._stepper.device):
            totals = live.totals[rows, None] + self._stepper.next_log_probs(terms, live.prefixes.take(rows))
            ends.append(totals[:, END_ID].clone())
            totals[:, END_ID] = -torch.inf
            if not self.config.allow_unknown:
                totals[:, UNKNOWN_ID] = -torch.inf
            best, words = totals.topk(min(self.config.width, self._words), dim=1)
            row, _ = (best > -torch.inf).nonzero(as_tuple=True)
            parts.append(_Longer(row + rows.start, words[best > -torch.inf], best[best > -torch.inf]))
        return torch.cat(ends), _Longer(*(torch.cat(tensors) for tensors in zip(*parts, strict=True)))

    def _keep(self, ends: Tensor, live: _Live, ended: list[_Best]) -> None:
        """Put the targets that end here among the best of their sources."""
        good = (ends > self._bounds(ended)[live.prefixes.sources]).nonzero().flatten()
        sources, words, log_probs = (tensor[good].tolist() for tensor in (live.prefixes.sources, live.words, ends))
        for source, target, log_prob in zip(sources, words, log_probs, strict=True):
            ended[source].add(log_prob, tuple(target))

    def _narrow(self, longer: _Longer, live: _Live, ended: list[_Best]) -> _Longer:
        """The best of each source's longer prefixes, of those that may still become one of its best targets."""
        sources = live.prefixes.sources[longer.rows]
        hopeful = (longer.totals > self._bounds(ended)[sources]).nonzero().flatten()
        best = hopeful[best_of_each(longer.totals[hopeful], sources[hopeful], self.config.width)]
        return _Longer(*(tensor[best] for tensor in longer))

    def _bounds(self, ended: list[_Best]) -> Tensor:
        return torch.tensor([best.bound for best in ended], dtype=torch.float64, device=self._stepper.device)

    def _left(self, longer: _Longer, live: _Live, sources: int) -> list[list[Hypothesis]]:
        """For each source the likeliest prefix that the length limit kept from going on, if there is one."""
        left: list[list[Hypothesis]] = [[] for _ in range(sources)]
        for row in longer.rows.tolist():
            source = int(live.prefixes.sources[row])
            if not left[source]:  # they come best first
                left[source].append(Hypothesis(tuple(live.words[row].tolist()), float(live.totals[row]), ended=False))
        return left


class _Live(NamedTuple):
    """Prefixes that have not ended; a row each."""

    prefixes: Prefixes
    words: Tensor  # rows × step
    totals: Tensor  # log p of the words


class _Longer(NamedTuple):
    """Prefixes of one word more."""

    rows: Tensor  # of the prefix without the word
    words: Tensor
    totals: Tensor


class _Best:
    """The best targets of a source that have ended."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._heap: list[tuple[float, tuple[int, ...]]] = []

    @property
    def bound(self) -> float:
        """What a further one must exceed."""
        return self._heap[0][0] if len(self._heap) == self._count else -math.inf

    def add(self, log_prob: float, words: tuple[int, ...]) -> None:
        """Take it in, and the worst out if there are too many."""
        heapq.heappush(self._heap, (log_prob, words))
        if len(self._heap) > self._count:
            heapq.heappop(self._heap)

    def in_order(self) -> list[Hypothesis]:
        """Best first."""
        return [Hypothesis(words, log_prob, ended=True) for log_prob, words in sorted(self._heap, reverse=True)]


def best_of_each(totals: Tensor, sources: Tensor, count: int) -> Tensor:
    """The places of each source's highest totals, best first, source by source.

    Args:
        totals: any number of them for a source.
        sources: of each.
        count: how many to take of a source.
    """
    order = totals.argsort(descending=True, stable=True)
    order = order[sources[order].argsort(stable=True)]
    grouped = sources[order]
    rank = torch.arange(len(order), device=order.device) - torch.searchsorted(grouped, grouped)
    return order[rank < count]
