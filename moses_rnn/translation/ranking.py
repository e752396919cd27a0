"""By what a beam search ranks targets that end, and which extensions of prefixes it follows."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor

from moses_rnn.networks.steps import Prefixes
from moses_rnn.translation.hypotheses import Hypothesis


class LivePrefixes(NamedTuple):
    """Prefixes that have not ended; a row each."""

    prefixes: Prefixes
    words: Tensor  # rows × step
    totals: Tensor  # log p of the words


class Extensions(NamedTuple):
    """Prefixes of one word more."""

    rows: Tensor  # of the prefix without the word
    words: Tensor
    totals: Tensor

    def take(self, places: Tensor) -> Extensions:
        """Some of them."""
        return Extensions(*(tensor[places] for tensor in self))


class Ranking(ABC):
    """Of sources that are searched together: takes the targets that end and says which prefixes continue."""

    @abstractmethod
    def choose(self, ends: Tensor, extensions: Extensions, live: LivePrefixes) -> Extensions:
        """Take the targets that end here; of the extensions those that continue, source by source, best first.

        Args:
            ends: log p of each live prefix with ``</s>``.
            extensions: of each live prefix the likeliest, as many as could continue; none that is impossible.
            live: the prefixes.
        """

    @abstractmethod
    def in_order(self, source: int) -> list[Hypothesis]:
        """The targets of a source that have ended, best first; at most as many as are wanted."""


class BySum(Ranking):
    """By log p, the sum over words and ``</s>``.

    Every end of a live prefix is judged. Since no word makes a target likelier, a source is done as soon as none of its
    live prefixes is above the worst of the targets that are wanted: `best` of each, none below `least_log_prob`.
    """

    def __init__(self, sources: int, width: int, best: int, least_log_prob: float = -math.inf) -> None:
        self._width, self._best = width, best
        self._least = math.nextafter(least_log_prob, -math.inf)
        self._ended: list[list[tuple[float, tuple[int, ...]]]] = [[] for _ in range(sources)]  # the best, best first

    def choose(self, ends: Tensor, extensions: Extensions, live: LivePrefixes) -> Extensions:
        """See `Ranking`."""
        good = (ends > self._bounds(ends.device)[live.prefixes.sources]).nonzero().flatten()
        for source, target, log_prob in _listed(good, ends, live):
            ended = self._ended[source]
            ended.append((log_prob, target))
            ended.sort(reverse=True)
            del ended[self._best :]
        sources = live.prefixes.sources[extensions.rows]
        hopeful = (extensions.totals > self._bounds(ends.device)[sources]).nonzero().flatten()
        return extensions.take(hopeful[best_of_each(extensions.totals[hopeful], sources[hopeful], self._width)])

    def _bounds(self, device: torch.device) -> Tensor:
        """What a further target of each source must exceed."""
        bounds = [ended[-1][0] if len(ended) == self._best else self._least for ended in self._ended]
        return torch.tensor(bounds, dtype=torch.float64, device=device)

    def in_order(self, source: int) -> list[Hypothesis]:
        """See `Ranking`."""
        return [Hypothesis(words, log_prob, ended=True) for log_prob, words in self._ended[source]]


class ByMean(Ranking):
    """By log p / (T + 1) of T words and ``</s>``, searched as RNNsearch's released code does (GroundHog, sample.py).

    ``</s>`` competes with the other words for the places of a beam, and a target that ends keeps its place: the width
    of its source shrinks by one, and at 0 its search is over. Nothing is proven to be the best. The code's forced
    minimum length is not taken over.
    """

    def __init__(self, sources: int, width: int, best: int, device: torch.device) -> None:
        self._best = best
        self._widths = torch.full((sources,), width, device=device)
        self._ended: list[list[Hypothesis]] = [[] for _ in range(sources)]

    def choose(self, ends: Tensor, extensions: Extensions, live: LivePrefixes) -> Extensions:
        """See `Ranking`."""
        totals = torch.cat([ends, extensions.totals])
        sources = torch.cat([live.prefixes.sources, live.prefixes.sources[extensions.rows]])
        possible = (totals > -torch.inf).nonzero().flatten()
        chosen = possible[best_of_each(totals[possible], sources[possible], self._widths[sources[possible]])]
        ending = chosen[chosen < len(ends)]
        self._widths -= torch.bincount(sources[ending], minlength=len(self._widths))
        for source, words, log_prob in _listed(ending, ends, live):
            self._ended[source].append(Hypothesis(words, log_prob, ended=True))
        return extensions.take(chosen[chosen >= len(ends)] - len(ends))

    def in_order(self, source: int) -> list[Hypothesis]:
        """See `Ranking`."""
        by_mean = sorted(self._ended[source], key=lambda h: (h.log_prob / (len(h.words) + 1), h.words), reverse=True)
        return by_mean[: self._best]


def _listed(rows: Tensor, ends: Tensor, live: LivePrefixes) -> list[tuple[int, tuple[int, ...], float]]:
    """Source, words and log p of the targets that some live prefixes are when they end."""
    sources, words, log_probs = (tensor[rows].tolist() for tensor in (live.prefixes.sources, live.words, ends))
    return list(zip(sources, map(tuple, words), log_probs, strict=True))


def best_of_each(totals: Tensor, sources: Tensor, count: int | Tensor) -> Tensor:
    """The places of each source's highest totals, best first, source by source.

    `count` is how many to take of a source, or beside each total how many to take of its source.
    """
    order = totals.argsort(descending=True, stable=True)
    order = order[sources[order].argsort(stable=True)]
    grouped = sources[order]
    rank = torch.arange(len(order), device=order.device) - torch.searchsorted(grouped, grouped)
    return order[rank < (count[order] if isinstance(count, Tensor) else count)]
