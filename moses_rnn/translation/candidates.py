"""Candidate lists: the few target words that a source's translation is chosen from (Jean et al. 2015, section 3.3).

V_x = {<unk>, </s>} ∪ the K most frequent words ∪ for each word of the source x its K' likeliest translations
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from moses_rnn.moses.lexicon import Lexicon
from moses_rnn.networks.steps import Columns
from moses_rnn.networks.vocabulary import END_ID, UNKNOWN_ID, Vocabulary

SPECIAL = UNKNOWN_ID, END_ID
Further = tuple[int, ...]  # ids of candidates behind the most frequent words; ascending


class CandidateLists:
    """The candidates of sources.

    Args:
        target: what is written, by frequency.
        lexicon: of source words, those outside the network's shortlist among them.
        frequent: K.
        of_each: K', translations of a source word.
        tokens: how many words of `target` stand for others and are candidates always, before the most frequent words.
    """

    def __init__(self, target: Vocabulary, lexicon: Lexicon, frequent: int, of_each: int, tokens: int = 0) -> None:
        self._id_of = target.id_of()
        self._lexicon = lexicon
        self._always = min(len(SPECIAL) + tokens + frequent, len(target))
        self._of_each = of_each
        self._of_word: dict[bytes, Further] = {}

    def of(self, source: Sequence[bytes]) -> Further:
        """The candidates of a source, but for the most frequent words."""
        return tuple(sorted({word for of_word in map(self._translations, source) for word in of_word}))

    def _translations(self, word: bytes) -> Further:
        if word not in self._of_word:
            ids = (self._id_of.get(target, UNKNOWN_ID) for target in self._lexicon.likeliest(word, self._of_each))
            self._of_word[word] = tuple(i for i in ids if i >= self._always)
        return self._of_word[word]

    def columns(self, sources: Sequence[Further], device: torch.device) -> Columns:
        """The candidates of sources that are searched together, given what `of` gives for each."""
        further = np.unique(np.fromiter((word for of_source in sources for word in of_source), np.int64))
        allowed = np.zeros((len(sources), self._always + len(further)), np.bool_)
        allowed[:, : self._always] = True
        for row, of_source in zip(allowed, sources, strict=True):
            row[self._always + np.searchsorted(further, np.array(of_source, np.int64))] = True
        words = np.concatenate([np.arange(self._always), further])
        return Columns(torch.from_numpy(words).to(device), torch.from_numpy(allowed).to(device))
