"""What networks have in common: their weights, dropout (Srivastava et al. 2014), what learns, and what is stepped."""

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
from moses_rnn.networks.recurrence import Recurrence
from moses_rnn.networks.softmax import Estimate, Output, OutputLayer, learned_log_probs
from moses_rnn.networks.steps import Candidates, NodeBlock, SomePrefixes, SomeTerms, Stepper
from moses_rnn.networks.tries import build_trie
from moses_rnn.networks.vocabulary import END_ID, Ids

Drop = Callable[[Tensor], Tensor]


def keep(x: Tensor) -> Tensor:
    """Leave nothing out."""
    return x


def drop_units(share: float, seed: int, device: torch.device) -> Drop:
    """A function that sets a share of the units (0 to below 1) to zero and scales the others up.

    The seed decides which, so that a resumed training leaves out the same units.
    """
    if not share:
        return keep
    random = torch.Generator(device).manual_seed(seed)

    def drop(x: Tensor) -> Tensor:
        kept = torch.empty_like(x).bernoulli_(1 - share, generator=random)
        return x * kept.div_(1 - share)

    return drop


class Network(nn.Module):
    """A network, whatever its equations; `state_dict` has the tensor names of the checkpoint format.

    Its `config` is a dataclass of what config.json has of it, with a `width` in hidden units and a `description`. The
    seed is that of the initial weights: equal seeds give equal weights, None leaves them unset.
    """

    config: Any
    kernel: Kernel = EAGER
    deviation: float  # of the initial weights, as the paper has it

    def __init__(self, config: Any, *, seed: int | None) -> None:
        super().__init__()
        self.config = config
        self._build(config)
        if seed is not None:
            self.initialise(seed)

    @abstractmethod
    def _build(self, config: Any) -> None:
        """Make the weights, unset."""

    @torch.no_grad()
    def initialise(self, seed: int, deviation: float | None = None) -> None:
        """Draw the weights, with the paper's deviation or another one."""
        random = torch.Generator().manual_seed(seed)
        for name, tensor in self.named_parameters():
            tensor.copy_(self._draw(name, tensor, self.deviation if deviation is None else deviation, random))

    def _draw(self, name: str, tensor: Tensor, deviation: float, random: torch.Generator) -> Tensor:
        """Initial weights for a tensor; here all are uniform in ±`deviation`."""
        return deviation * (2 * torch.rand(tensor.shape, generator=random) - 1)

    @property
    def embeddings(self) -> Mapping[str, nn.Parameter]:
        """Of the sides that have them: "source", which is read, and "target"; a row for each id at least."""
        return {side: self.get_parameter(f"{part}.embedding") for side, part in PARTS.items()}

    def use_kernel(self, kernel: Kernel) -> None:
        """Choose how all parts compute."""
        for part in self.modules():
            vars(part)["kernel"] = kernel


PARTS = {"source": "encoder", "target": "decoder"}


def orthogonal_or_gaussian(name: str, tensor: Tensor, deviation: float, random: torch.Generator) -> Tensor:
    """As gated networks begin: biases 0, recurrent matrices orthogonal, the others N(0, `deviation`²)."""
    if tensor.dim() == 1:
        return torch.zeros_like(tensor)
    gaussian = torch.randn(tensor.shape, generator=random)
    return torch.linalg.svd(gaussian)[0] if ".U" in name else gaussian * deviation


def unset(*shape: int) -> nn.Parameter:
    """A tensor to be learned, of whatever numbers the memory holds."""
    return nn.Parameter(torch.empty(*shape))


class GatedStep(nn.Module):
    """The weights of a gated step of H units that reads E numbers, but for those of a context."""

    kernel: Kernel = EAGER
    resets_after = False  # whether r acts on U h_{t-1}, not on h_{t-1}

    def _add_cell(self, H: int, E: int) -> None:
        self.W, self.W_z, self.W_r = unset(H, E), unset(H, E), unset(H, E)
        self.U, self.U_z, self.U_r = unset(H, H), unset(H, H), unset(H, H)
        self.b, self.b_z, self.b_r = unset(H), unset(H), unset(H)

    def inputs(self, e: Tensor) -> Tensor:
        """What a word adds inside z, r and h~, in this order, with their biases; nodes × 3H."""
        We = self.kernel.times(e, torch.cat([self.W_z, self.W_r, self.W]))
        return We + torch.cat([self.b_z, self.b_r, self.b])

    def recurrence(self) -> Recurrence:
        """The step by its weights."""
        return Recurrence(self.U_z, self.U_r, self.U, self.resets_after, self.kernel)

    def states(self, x: Tensor, c: Tensor | None, h_0: Tensor | None, active: Sequence[int]) -> Tensor:
        """All states h_t, packed; see `Recurrence.states`."""
        return self.recurrence().states(x, c, h_0, active)


class TranslationNetwork(Network):
    """A network that gives p(target | source) = softmax(G r + b_G) word by word."""

    @property
    @abstractmethod
    def output(self) -> Output:
        """G and b_G, which give the words' logits; K × R and K."""

    @abstractmethod
    def predict(self, sources: Batch, targets: Batch, source_of: Tensor, drop: Drop) -> Tensor:
        """r, from which each of ``targets.packed()`` is predicted; nodes × R. Arguments as of `word_log_probs`."""

    def word_log_probs(
        self,
        sources: Batch,
        targets: Batch,
        source_of: Tensor,  # for each target its source's row
        sample: Estimate | None = None,  # normalises by words drawn or by a partition, to learn large shortlists
        drop: Drop = keep,
    ) -> Tensor:
        """log p of every target word and its ``</s>``, given the words before and the source; ``targets.packed()``."""
        r = self.predict(sources, targets, source_of, drop)
        return learned_log_probs(r, self.output, targets.packed(), self.kernel, sample)


def previous_words(targets: Batch, first: int = END_ID) -> Tensor:
    """y_{t-1} of each of ``targets.packed()``, where y_0 is `first`; nodes."""
    begins = torch.full_like(targets.ids[:, 0], first)
    return torch.cat([begins, *(targets.ids[:rows, t] for t, rows in enumerate(targets.active[1:]))])


def previous_embeddings(embeddings: Tensor, targets: Batch) -> Tensor:
    """e(y_{t-1}) of each of ``targets.packed()``, where e(y_0) = 0; nodes × E."""
    first = targets.active[0]
    nothing = embeddings.new_zeros(first, embeddings.shape[1])
    return torch.cat([nothing, embedding(previous_words(targets)[first:], embeddings)])


class LanguageNetwork(Network):
    """A network of targets alone.

    Ids are the vocabulary's; what stands before a sentence, ``<s>``, has the id K, which is never predicted.
    """

    @property
    def embeddings(self) -> Mapping[str, nn.Parameter]:
        """See `Network`; the last row is that of ``<s>``."""
        return {"target": self.get_parameter("embedding")}

    @property
    def vocabulary_size(self) -> int:
        """K, how many words can be predicted, ``<unk>`` and ``</s>`` among them."""
        return len(self.get_parameter("embedding")) - 1

    @property
    @abstractmethod
    def output(self) -> Output:
        """See `TranslationNetwork`."""


# -- scoring and search

SomeNetwork = TypeVar("SomeNetwork", bound=Network)


def for_scoring(
    model: SomeNetwork, device: torch.device | str, product_dtype: torch.dtype
) -> tuple[SomeNetwork, torch.dtype]:
    """A copy of a trained network that learns nothing, and the type of all its numbers but those of products.

    That is float32, or float64 as the products are; products alone may be rounded further.
    """
    dtype = torch.float64 if product_dtype == torch.float64 else torch.float32
    model = copy.deepcopy(model).requires_grad_(False).to(device, dtype)
    model.use_kernel(Kernel(product_dtype))
    return model, dtype


class NetworkStepper(Stepper[SomeTerms, SomePrefixes]):
    """A network that predicts words by one softmax, stepped over packed rows.

    Matrix products are float32, bfloat16, or float64 to measure the others' error. States, gates and normalisation are
    float32, or float64 as products are.
    """

    _model: Any  # a copy, where it computes

    def __init__(self, model: Any, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32) -> None:
        self.device = torch.device(device)
        self._product_dtype = dtype
        self._model, self._dtype = for_scoring(model, self.device, dtype)
        G, b_G = self._model.output
        self.vocabulary_size = len(b_G)
        self._output = OutputLayer(G, b_G, dtype, self._dtype)
        self._prepare()

    def _prepare(self) -> None:
        """Arrange the weights."""

    @abstractmethod
    def _read_out(self, terms: SomeTerms, prefixes: SomePrefixes) -> Tensor:
        """r, from which the word after each prefix is predicted; prefixes × R."""

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

    def _weight(self, *matrices: Tensor) -> Tensor:
        """Matrices above each other, in the type of products."""
        return torch.cat(matrices).to(self._product_dtype).contiguous()

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
