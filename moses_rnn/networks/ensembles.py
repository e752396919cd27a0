"""Several networks that write the same words, stepped together: their distributions are combined word by word.

M members with distributions p_m over the same K words:

    geometric   log p = log softmax_y( (1/M) Σ_m log p_m(y) )     normalised; equals the mean of logits
    mean-log    log p = (1/M) Σ_m log p_m(y)                      of Jean et al.'s released code; no distribution
    arithmetic  log p = log Σ_m λ_m p_m(y)                        λ_m = 1/M, or given
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from moses_rnn.networks.batches import Lengths
from moses_rnn.networks.steps import Columns, NodeBlock, Stepper
from moses_rnn.networks.tries import build_trie, take_phrases
from moses_rnn.networks.vocabulary import Ids

GEOMETRIC, MEAN_LOG, ARITHMETIC = COMBINATIONS = "geometric", "mean-log", "arithmetic"
Map = npt.NDArray[np.int64]  # of ids to a member's ids


class Member(NamedTuple):
    """A network of an ensemble."""

    stepper: Stepper[Any, Any]
    source_ids: Map  # what the ensemble's ids of source words are to it


class EnsembleTerms(NamedTuple):
    """What depends on the sources alone; a row each, for every member."""

    members: tuple[Any, ...]

    def take(self, rows: Tensor) -> EnsembleTerms:
        """The same for chosen rows, repeated at will."""
        return EnsembleTerms(tuple(terms.take(rows) for terms in self.members))


class EnsemblePrefixes(NamedTuple):
    """Beginnings of targets, as every member has them."""

    sources: Tensor  # row of each one's source among the terms
    members: tuple[Any, ...]

    def take(self, rows: slice) -> EnsemblePrefixes:
        """Some of them."""
        return EnsemblePrefixes(self.sources[rows], tuple(prefixes.take(rows) for prefixes in self.members))


class EnsembleStepper(Stepper[EnsembleTerms, EnsemblePrefixes]):
    """Members that step together.

    Args:
        members: at least one, of the same target words, on the same device.
        combination: one of COMBINATIONS.
        shares: λ_m of the arithmetic combination, which sum to 1; None: equal ones.

    Raises:
        ValueError: there is no such combination, or the shares do not fit.
    """

    def __init__(self, members: Sequence[Member], combination: str, shares: Sequence[float] | None = None) -> None:
        if combination not in COMBINATIONS:
            raise ValueError(f"expected a combination of {', '.join(COMBINATIONS)}, found {combination!r}")
        shares = [1 / len(members)] * len(members) if shares is None else shares
        if len(shares) != len(members) or min(shares) <= 0 or not math.isclose(sum(shares), 1, rel_tol=1e-6):
            raise ValueError(f"expected {len(members)} positive shares that sum to 1, found {shares}")
        self._members = members
        self._steppers = [member.stepper for member in members]
        self._combination = combination
        self.device = self._steppers[0].device
        self.vocabulary_size = self._steppers[0].vocabulary_size
        self._log_shares = torch.tensor(shares, dtype=torch.float64, device=self.device).log()

    def read(self, ids: Ids, lengths: Lengths) -> tuple[EnsembleTerms, npt.NDArray[np.int64]]:
        """See `Stepper`; equal sources are read once by each member."""
        leaf_of = build_trie(ids, lengths).leaf_of
        first = np.unique(leaf_of, return_index=True)[1]  # of each distinct source
        distinct, of_distinct = take_phrases(ids, lengths, first)
        terms = []
        for stepper, source_ids in self._members:
            of_member, row_of = stepper.read(source_ids[distinct], of_distinct)
            terms.append(of_member.take(torch.from_numpy(row_of).to(self.device)))
        return EnsembleTerms(tuple(terms)), leaf_of

    def start(self, terms: EnsembleTerms) -> EnsemblePrefixes:
        """The empty prefix of each source."""
        prefixes = [stepper.start(of_member) for stepper, of_member in self._with(terms)]
        return EnsemblePrefixes(prefixes[0].sources, tuple(prefixes))

    def step(self, terms: EnsembleTerms, prefixes: EnsemblePrefixes, rows: Tensor, words: Tensor) -> EnsemblePrefixes:
        """Chosen rows of the prefixes, each with one word more; `rows` and `words` are as many."""
        longer = [
            stepper.step(of_member, before, rows, words)
            for (stepper, of_member), before in zip(self._with(terms), prefixes.members, strict=True)
        ]
        return EnsemblePrefixes(longer[0].sources, tuple(longer))

    def next_log_probs(
        self, terms: EnsembleTerms, prefixes: EnsemblePrefixes, columns: Columns | None = None
    ) -> Tensor:
        """See `Stepper`; each member is normalised over the same words."""
        log_probs = [
            stepper.next_log_probs(of_member, of_prefixes, columns)
            for (stepper, of_member), of_prefixes in zip(self._with(terms), prefixes.members, strict=True)
        ]
        combined = self._combined(torch.stack(log_probs))
        return torch.log_softmax(combined, 1) if self._combination == GEOMETRIC else combined

    def word_log_probs(
        self,
        terms: EnsembleTerms,
        prefixes: EnsemblePrefixes,
        rows: Tensor,
        words: Tensor,
        blocks: Sequence[NodeBlock],
    ) -> Tensor:
        """See `Stepper`; only the geometric combination needs the probabilities of all words."""
        if self._combination == GEOMETRIC:
            return super().word_log_probs(terms, prefixes, rows, words, blocks)
        log_probs = [
            stepper.word_log_probs(of_member, of_prefixes, rows, words, blocks).double()
            for (stepper, of_member), of_prefixes in zip(self._with(terms), prefixes.members, strict=True)
        ]
        return self._combined(torch.stack(log_probs))

    def alignment(self, terms: EnsembleTerms, prefixes: EnsemblePrefixes) -> Tensor | None:
        """The mean alignment of the members that have one, of the word that follows each prefix."""
        alphas = [
            stepper.alignment(of_member, of_prefixes)
            for (stepper, of_member), of_prefixes in zip(self._with(terms), prefixes.members, strict=True)
        ]
        there = [alpha for alpha in alphas if alpha is not None]
        return torch.stack(there).mean(0) if there else None

    def _combined(self, log_probs: Tensor) -> Tensor:
        """Of members × anything; the geometric one not yet normalised."""
        if self._combination == ARITHMETIC:
            shape = (-1, *[1] * (log_probs.dim() - 1))
            return torch.logsumexp(log_probs + self._log_shares.view(shape), 0)
        return log_probs.mean(0)

    def _with(self, terms: EnsembleTerms) -> list[tuple[Stepper[Any, Any], Any]]:
        return list(zip(self._steppers, terms.members, strict=True))
