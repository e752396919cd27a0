"""A recurrent language model arranged for scoring: sentences as a trie, each distinct prefix once.

Products always have as many rows, and so has the work between them, and what is summed up is filled with zeros to whole
vectors, for else libraries treat the last rows in another way: a value does not depend on its company, to the last bit.
So a model that learns while it reads gives what one that does not gives, as long as its rate is 0.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import linear, pad

from moses_rnn.inference.tries import Trie, build_trie
from moses_rnn.models.batches import Lengths
from moses_rnn.models.folders import Architecture
from moses_rnn.models.rnnlm import FIRST_STATE, Rnnlm, RnnlmConfig
from moses_rnn.models.vocabulary import Ids

ROWS = 32  # prefixes computed together; a multiple of what the processor's vectors hold
DEPTH = 8  # of the numbers of units in products, a divisor
TRIE_CELLS = 1 << 17  # sentences × longest of them that a trie is built of

Values = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]


class _Level(NamedTuple):
    """Nodes of a trie: what they cost, and which of them are where in the levels around."""

    log_p: Values  # of each node's last word
    above: Places  # of each node the one that it follows
    leaves: Places


class SentenceScores:
    """Scores sentences of ids, by the weights that the model has at the time.

    Args:
        model: a network on its device.
        precision: of the matrix products.
    """

    def __init__(self, model: Rnnlm, precision: torch.dtype = torch.float32) -> None:
        self.model = model
        self._precision = precision
        self._device = model.G.device

    def log_probs(self, ids: Ids, lengths: Lengths) -> Values:
        """See `WordNetwork`."""
        ends = np.append(0, np.cumsum(lengths))
        parts = [self._of_group(ids[ends[some.start] : ends[some.stop]], lengths[some]) for some in _groups(lengths)]
        return np.concatenate([np.zeros(0), *parts])

    def first_states(self) -> Tensor:
        """s_0, in which nothing is read; 1 × H."""
        return self.model.U.new_full((1, len(self.model.U)), FIRST_STATE)

    @torch.no_grad()
    def next_states(self, words: Tensor, states: Tensor) -> Tensor:
        """What states become that read a word each; n × H."""
        e, U = self.model.embedding[words], self._operand(self.model.U)
        following = torch.empty_like(states)
        for rows in _blocks(len(states)):
            e_t, s = _filled(e[rows]), _filled(states[rows])
            s = torch.sigmoid(e_t + linear(self._operand(s), U).to(s.dtype))
            following[rows] = s[: len(following[rows])]
        return following

    @torch.no_grad()
    def next_log_probs(self, states: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """log p of every word after some states, ROWS of them at once; the rows, and rows × K."""
        G = self._operand(self.model.G)
        for rows in _blocks(len(states)):
            logits = linear(self._operand(_filled(states[rows])), G).to(states.dtype)
            yield rows, torch.log_softmax(logits, 1)[: rows.stop - rows.start]

    def _operand(self, matrix: Tensor) -> Tensor:
        """A factor of products over units, in their precision; units that are not there are zeros."""
        return pad(matrix.to(self._precision), (0, -matrix.shape[1] % DEPTH))

    def _of_group(self, ids: Ids, lengths: Lengths) -> Values:
        trie = build_trie(ids, lengths)
        paths = _paths(self._levels(trie), trie.leaves)
        return paths[trie.leaf_of][np.arange(paths.shape[1]) <= lengths[:, None]]

    def _levels(self, trie: Trie) -> list[_Level]:
        """All nodes; each state is normalised once, for all words that follow it."""
        states = [self.next_states(torch.tensor([self.model.words], device=self._device), self.first_states())]
        above = [np.zeros(1, np.int64)]  # the nodes that have a state
        for level in trie.levels:
            words, parents = (torch.from_numpy(part[level.alive]) for part in (level.words, level.parents))
            states.append(self.next_states(words.to(self._device), states[-1][parents.to(self._device)]))
            above.append(level.alive)
        begins = np.cumsum([0, *map(len, states)])
        parents_of_all = [level.parents + begin for level, begin in zip(trie.levels, begins, strict=False)]
        log_p = self._chosen(torch.cat(states), parents_of_all, [level.words for level in trie.levels])
        cut = np.split(log_p, np.cumsum([len(level.words) for level in trie.levels])[:-1])
        return [
            _Level(values, alive[level.parents], level.leaves)
            for level, values, alive in zip(trie.levels, cut, above, strict=False)
        ]

    def _chosen(self, states: Tensor, parents: Sequence[Places], words: Sequence[Places]) -> Values:
        """log p of words, each after one of the states, in their order; as many as words."""
        rows_of, chosen = np.concatenate(parents), np.concatenate(words)
        values = np.empty(len(chosen))
        for rows, log_p in self.next_log_probs(states):
            first, last = np.searchsorted(rows_of, [rows.start, rows.stop])
            if first < last:
                places = torch.from_numpy(rows_of[first:last] - rows.start), torch.from_numpy(chosen[first:last])
                values[first:last] = log_p[tuple(part.to(self._device) for part in places)].double().cpu().numpy()
        return values


def _groups(lengths: Lengths) -> Iterator[slice]:
    """Sentences whose trie is in memory at once, at least one."""
    first, longest = 0, 0
    for i, length in enumerate(lengths.tolist()):
        longest = max(longest, length + 1)
        if i > first and (i + 1 - first) * longest > TRIE_CELLS:
            yield slice(first, i)
            first, longest = i, length + 1
    if first < len(lengths):
        yield slice(first, len(lengths))


def _blocks(count: int) -> Iterator[slice]:
    for first in range(0, count, ROWS):
        yield slice(first, min(first + ROWS, count))


def _filled(rows: Tensor) -> Tensor:
    """ROWS rows, of which the last may be zeros."""
    if len(rows) == ROWS:
        return rows
    whole = rows.new_zeros(ROWS, rows.shape[1])
    whole[: len(rows)] = rows
    return whole


def _paths(levels: Sequence[_Level], leaves: int) -> Values:
    """log p of every word on the way to each leaf; leaves × levels, zero behind its end."""
    values = np.zeros((leaves, len(levels)))
    first = leaves  # leaves are numbered level by level
    nodes = np.zeros(0, np.int64)  # that lead to the leaves from `first` on
    for depth, level in reversed(list(enumerate(levels))):
        first -= len(level.leaves)
        nodes = np.concatenate([level.leaves, nodes])
        values[first:, depth] = level.log_p[nodes]
        nodes = level.above[nodes]
    return values


def scores_on_device(model: Rnnlm, device: torch.device | str, dtype: torch.dtype) -> SentenceScores:
    """A network's scores where it is to compute."""
    return SentenceScores(on_device(model, device, dtype), dtype)


def on_device(model: Rnnlm, device: torch.device | str, dtype: torch.dtype) -> Rnnlm:
    """The network on a device; of float64 if its products are, which the one given does not become."""
    if dtype == torch.float64:
        return copy.deepcopy(model).to(device, torch.float64)
    return model.to(device)


RNNLM = Architecture("rnnlm", "RNNLM", "RNNLM", ("target",), RnnlmConfig, Rnnlm, words=scores_on_device, format=2)
