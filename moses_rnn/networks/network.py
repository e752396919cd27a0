"""What networks have in common: dropout (Srivastava et al. 2014), and what all networks of pairs have."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, linear

from moses_rnn.networks.batches import Batch, Lengths
from moses_rnn.networks.hardware import EAGER, Kernel
from moses_rnn.networks.softmax import Estimate, OutputLayer
from moses_rnn.networks.steps import Candidates, NodeBlock, SomePrefixes, SomeTerms, Stepper
from moses_rnn.networks.tries import build_trie
from moses_rnn.networks.vocabulary import Ids

Drop = Callable[[Tensor], Tensor]


def keep(x: Tensor) -> Tensor:
    """Leave nothing out."""
    return x


def drop_units(share: float, seed: int, device: torch.device) -> Drop:
    """A function that sets a share of the units to zero and scales the others up; of any shape.

    A number decides which, so that a resumed training leaves out the same units.

    Args:
        share: of the units, from 0 to below 1.
        seed: decides which.
        device: of the units.
    """
    if not share:
        return keep
    random = torch.Generator(device).manual_seed(seed)

    def drop(x: Tensor) -> Tensor:
        kept = torch.empty_like(x).bernoulli_(1 - share, generator=random)
        return x * kept.div_(1 - share)

    return drop


class NetworkOfPairs(nn.Module):
    """A network of pairs, whatever its equations; `state_dict` has the tensor names of the checkpoint format.

    Its `config` is a dataclass of what config.json has of it, with a `width` in hidden units and a `description`.
    """

    config: Any
    kernel: Kernel = EAGER

    @property
    def embeddings(self) -> Mapping[str, nn.Parameter]:
        """Of the sides that have them: "source", which is read, and "target"; a row for each id at least."""
        return {
            "source": self.get_parameter("encoder.embedding"),
            "target": self.get_parameter("decoder.embedding"),
        }

    @abstractmethod
    def initialise(self, seed: int, deviation: float) -> None:
        """Draw the weights.

        Args:
            seed: equal seeds give equal weights.
            deviation: of those that their paper gives one figure for.
        """

    def use_kernel(self, kernel: Kernel) -> None:
        """Choose how the work between products is done: compiled or natively, for a long training."""
        for part in self.modules():
            vars(part)["kernel"] = kernel


class TranslationNetwork(NetworkOfPairs):
    """A network that gives p(target | source)."""

    @abstractmethod
    def word_log_probs(
        self,
        sources: Batch,
        targets: Batch,
        source_of: Tensor,
        product_dtype: torch.dtype | None = None,
        sample: Estimate | None = None,
        drop: Drop = keep,
    ) -> Tensor:
        """Score every target word, the closing ``</s>`` included, by its log p given the words before and the source.

        Args:
            sources: S sources.
            targets: T targets.
            source_of: for each target its source's row; T.
            product_dtype: the type that matrix products are computed in; by default that of the weights.
            sample: normalise by words drawn or by a partition, for training with a large shortlist.
            drop: leaves units out, for training.

        Returns:
            One value for each of ``targets.packed()``; nodes.
        """


def previous_embeddings(embeddings: Tensor, targets: Batch) -> Tensor:
    """e(y_{t-1}) of each of ``targets.packed()``, where e(y_0) = 0; nodes × E."""
    nothing = embeddings.new_zeros(targets.active[0], embeddings.shape[1])
    previous = [targets.ids[:rows, t] for t, rows in enumerate(targets.active[1:])]
    return torch.cat([nothing, embedding(torch.cat([targets.ids[:0, 0], *previous]), embeddings)])


# -- scoring and search

SomeNetwork = TypeVar("SomeNetwork", bound=nn.Module)


def for_scoring(
    model: SomeNetwork, device: torch.device | str, product_dtype: torch.dtype
) -> tuple[SomeNetwork, torch.dtype]:
    """A copy of a trained network that learns nothing, and the type of all its numbers: float32, or float64.

    Args:
        model: the trained network.
        device: where to compute.
        product_dtype: of matrix products, which alone may be rounded further.
    """
    dtype = torch.float64 if product_dtype == torch.float64 else torch.float32
    return copy.deepcopy(model).requires_grad_(False).to(device, dtype), dtype


class NetworkStepper(Stepper[SomeTerms, SomePrefixes]):
    """A network that predicts words by one softmax, stepped over packed rows.

    States, gates and normalisation are float32, or float64 as products are.

    Args:
        model: the trained network.
        device: where to compute.
        dtype: of matrix products: float32, bfloat16, or float64 to measure the others' error.
    """

    _model: Any  # a copy, where it computes
    _output: OutputLayer

    def __init__(self, model: Any, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32) -> None:
        self.device = torch.device(device)
        self._product_dtype = dtype
        self._model, self._dtype = for_scoring(model, self.device, dtype)
        self._prepare()

    @abstractmethod
    def _prepare(self) -> None:
        """Arrange the weights, and call `_make_output`."""

    @abstractmethod
    def _read_out(self, terms: SomeTerms, prefixes: SomePrefixes) -> Tensor:
        """What each prefix predicts, before the words; prefixes × R."""

    @torch.inference_mode()
    def next_log_probs(self, terms: SomeTerms, prefixes: SomePrefixes, candidates: Candidates | None = None) -> Tensor:
        """See `Stepper`; as exact as the products are: bfloat16 ones show in its second decimal."""
        return self._output.log_probs(self._read_out(terms, prefixes), prefixes.sources, candidates)

    @torch.inference_mode()
    def word_log_probs(
        self, terms: SomeTerms, prefixes: SomePrefixes, rows: Tensor, words: Tensor, blocks: Sequence[NodeBlock]
    ) -> Tensor:
        """See `Stepper`; each prefix is normalised once, whatever the number of words after it."""
        return self._output.chosen(self._read_out(terms, prefixes), rows, words, blocks)

    def _make_output(self, G: Tensor, b_G: Tensor) -> None:
        self.vocabulary_size = len(b_G)
        self._output = OutputLayer(G, b_G, self._product_dtype, self._dtype)

    def _weight(self, matrix: Tensor) -> Tensor:
        """In the type of products."""
        return matrix.to(self._product_dtype).contiguous()

    def _times(self, rows: Tensor, matrix: Tensor) -> Tensor:
        """A product, given back in the type of states."""
        return linear(rows.to(self._product_dtype), matrix).to(self._dtype)


class Unread(NamedTuple):
    """What a network that reads no sources knows of them; a row each."""

    rows: Tensor  # sources × 0


class WordPrefixes(NamedTuple):
    """Beginnings of sentences; a row each."""

    sources: Tensor  # row of each one's source, of which nothing is read
    state: Tensor  # that predicts the word after each; numbers of the network's own choice


class WordStepper(NetworkStepper[Unread, WordPrefixes]):
    """A language model, which writes targets whatever the source."""

    def encode(self, ids: Ids, lengths: Lengths) -> tuple[Unread, npt.NDArray[np.int64]]:
        """See `Stepper`."""
        sources = build_trie(ids, lengths)
        return Unread(torch.empty(sources.leaves, 0, device=self.device)), sources.leaf_of

    @torch.inference_mode()
    def start(self, terms: Unread) -> WordPrefixes:
        """See `Stepper`."""
        rows = torch.arange(len(terms.rows), device=self.device)
        return WordPrefixes(rows, self._begin().expand(len(rows), -1))

    @torch.inference_mode()
    def step(self, terms: Unread, prefixes: WordPrefixes, rows: Tensor, words: Tensor) -> WordPrefixes:
        """See `Stepper`."""
        return WordPrefixes(prefixes.sources[rows], self._next(prefixes.state.index_select(0, rows), words))

    @abstractmethod
    def _begin(self) -> Tensor:
        """The state that predicts the first word; 1 × numbers."""

    @abstractmethod
    def _next(self, states: Tensor, words: Tensor) -> Tensor:
        """The states after one word more each."""
