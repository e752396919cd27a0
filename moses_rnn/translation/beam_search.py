"""Beam search for the targets of the highest log p(f|e), or of the highest log p(f|e) per word.

At every step the ends of all live prefixes are judged, and the likeliest `width` extensions of each source continue;
see `ranking` for the two ways. K words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from moses_rnn.networks.steps import Columns, Stepper, Terms, row_blocks
from moses_rnn.networks.vocabulary import END_ID, UNKNOWN_ID, Phrase
from moses_rnn.translation.hypotheses import MAX_WORDS, Hypothesis, Writer, read_sources
from moses_rnn.translation.ranking import ByMean, BySum, Extensions, LivePrefixes, Ranking

LengthScore = Literal["sum", "mean"]


@dataclass(frozen=True)
class BeamConfig:
    """How far to search, and for how many targets."""

    width: int = 50  # live prefixes of a source
    best: int = 1  # targets wanted
    max_words: int = MAX_WORDS
    allow_unknown: bool = True  # <unk> is a word of the model like any other
    words_per_source_word: int = 0  # at most so many for each word of the source and its </s>; 0: `max_words` for all
    length_score: LengthScore = "sum"  # or "mean": log p / (T + 1) decides; see `ranking`
    unknown_tokens: int = 0  # words behind </s> that stand for unknown ones, as <unk> does; see `scorers.rare_words`

    def most_words(self, source: Phrase) -> int:
        """The longest target of a source."""
        return self.words_per_source_word * (len(source) + 1) or self.max_words


class BeamSearch(Writer):
    """Finds likely target phrases.

    What it finds is the best of what it looked at: only a beam that loses no prefix is sure to find the best of all.
    Of each source it gives at most `config.best` targets, best first. Where the length limit ended a search that might
    have found better ones, the likeliest of the prefixes it was left with follows, which has not `ended`.
    Where the sum decides, no prefix below `least_log_prob` is followed.
    """

    def __init__(self, stepper: Stepper[Any, Any], config: BeamConfig, *, least_log_prob: float = -math.inf) -> None:
        super().__init__(stepper, config.width)
        self.config = config
        self._least_log_prob = least_log_prob

    @torch.inference_mode()
    def together(self, sources: Sequence[Phrase], columns: Columns | None = None) -> list[list[Hypothesis]]:
        """The targets of each source; with columns, of candidate words alone and by their probabilities among these."""
        terms = read_sources(self._stepper, sources)
        live = LivePrefixes(
            self._stepper.start(terms),
            words=torch.empty(len(sources), 0, dtype=torch.int64, device=self._stepper.device),
            totals=torch.zeros(len(sources), dtype=torch.float64, device=self._stepper.device),
        )
        ranking = self._ranking(len(sources))
        limits = _Limits([self.config.most_words(source) for source in sources], self._stepper.device)
        while True:
            ends, extensions = self._judge(terms, live, columns)
            extensions = limits.stop(ranking.choose(ends, extensions, live), live)
            if not len(extensions.rows):
                return [ranking.in_order(source) + left for source, left in enumerate(limits.left)]
            prefixes = self._stepper.step(terms, live.prefixes, extensions.rows, extensions.words)
            words = torch.cat([live.words[extensions.rows], extensions.words[:, None]], 1)
            live = LivePrefixes(prefixes, words, extensions.totals)

    def _ranking(self, sources: int) -> Ranking:
        if self.config.length_score == "mean":
            return ByMean(sources, self.config.width, self.config.best, self._stepper.device)
        return BySum(sources, self.config.width, self.config.best, self._least_log_prob)

    def _judge(self, terms: Terms, live: LivePrefixes, columns: Columns | None) -> tuple[Tensor, Extensions]:
        """log p of each live prefix with ``</s>``, and its likeliest continuations, of which none loses one wanted.

        Both special words, and what stands for unknown ones, are among all columns, and so have the places there that
        they have among all words.
        """
        ends, parts = [], []
        count = self._words if columns is None else len(columns.words)
        for rows in row_blocks(len(live.totals), count, self._stepper.device):
            log_probs = self._next_log_probs(terms, live.prefixes.take(rows), columns)
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


class _Limits:
    """How many words the targets of each source may have, and the likeliest prefix that its limit stopped, if any."""

    def __init__(self, words: Sequence[int], device: torch.device) -> None:
        self.left: list[list[Hypothesis]] = [[] for _ in words]
        self._lengths = frozenset(words)
        self._words = torch.tensor(words, dtype=torch.int64, device=device)

    def stop(self, extensions: Extensions, live: LivePrefixes) -> Extensions:
        """The extensions that may continue; they are one word longer than the live prefixes."""
        if live.words.shape[1] not in self._lengths:
            return extensions
        at_limit = self._words[live.prefixes.sources[extensions.rows]] == live.words.shape[1]
        for row in extensions.rows[at_limit].tolist():
            left = self.left[int(live.prefixes.sources[row])]
            if not left:  # they come best first
                left.append(Hypothesis(tuple(live.words[row].tolist()), float(live.totals[row]), ended=False))
        return extensions.take(~at_limit)
