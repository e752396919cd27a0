"""Shared code of networks: weights, dropout (Srivastava et al. 2014), training modules and steppers."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, linear

from moses_rnn.networks.batches import Batch, Ints, Lengths
from moses_rnn.networks.compute import EAGER, Kernel
from moses_rnn.networks.recurrence import Recurrence
from moses_rnn.networks.softmax import Output, OutputLayer, learned_log_probs, logits_above_mean
from moses_rnn.networks.steps import Candidates, Encoded, NodeBlock, Prefixes, Stepper
from moses_rnn.networks.tries import build_trie
from moses_rnn.networks.vocabulary import END_ID, Ids

Drop = Callable[[Tensor], Tensor]


def keep(x: Tensor) -> Tensor:
    """Return x unchanged: no dropout."""
    return x


def drop_units(share: float, seed: int, device: torch.device) -> Drop:
    """Return a function that zeroes a share of the units (0 to below 1) and scales the others up.

    The seed decides which units, so that a resumed training drops the same ones.
    """
    if not share:
        return keep
    random = torch.Generator(device).manual_seed(seed)
    least = min(round(share * (1 << 16)), (1 << 16) - 1) - (1 << 15)  # of the 16-bit numbers that keep a unit

    def drop(x: Tensor) -> Tensor:
        # 16 random bits decide for each unit: four units at once are several times as fast as `bernoulli_`
        bits = torch.empty(-(-x.numel() // 4), dtype=torch.int64, device=device).random_(
            -(1 << 63), None, generator=random
        )
        kept = bits.view(torch.int16)[: x.numel()].view(x.shape) >= least
        return x * kept.to(x.dtype).div_(1 - share)

    return drop


class Network(nn.Module):
    """Base class of networks; `state_dict` has the tensor names of the checkpoint format.

    Its `config` is a dataclass of its entries in config.json, with a `width` in hidden units and a `description`. Equal
    seeds give equal initial weights; None leaves them uninitialised.
    """

    config: Any
    kernel: Kernel = EAGER
    deviation: float  # of the initial weights, as in the paper

    def __init__(self, config: Any, *, seed: int | None) -> None:
        super().__init__()
        self.config = config
        self._build(config)
        if seed is not None:
            self.initialise(seed)

    @abstractmethod
    def _build(self, config: Any) -> None:
        """Create the weights, uninitialised."""

    @torch.no_grad()
    def initialise(self, seed: int, deviation: float | None = None) -> None:
        """Draw the initial weights, with the paper's deviation by default."""
        random = torch.Generator().manual_seed(seed)
        for name, tensor in self.named_parameters():
            tensor.copy_(self._draw(name, tensor, self.deviation if deviation is None else deviation, random))

    def _draw(self, name: str, tensor: Tensor, deviation: float, random: torch.Generator) -> Tensor:
        """Return initial weights for a tensor; by default, uniform in ±`deviation`."""
        return deviation * (2 * torch.rand(tensor.shape, generator=random) - 1)

    @property
    def embeddings(self) -> Mapping[str, nn.Parameter]:
        """Embeddings by side ("source", which is read, and "target"), if any; at least one row per id."""
        parts = {"source": "encoder", "target": "decoder"}
        return {side: self.get_parameter(f"{part}.embedding") for side, part in parts.items()}

    def use_kernel(self, kernel: Kernel) -> None:
        """Set the kernel of all parts."""
        for part in self.modules():
            vars(part)["kernel"] = kernel


def orthogonal_or_gaussian(name: str, tensor: Tensor, deviation: float, random: torch.Generator) -> Tensor:
    """Return a gated network's initial weights: biases 0, recurrent matrices orthogonal, others N(0, `deviation`²)."""
    if tensor.dim() == 1:
        return torch.zeros_like(tensor)
    gaussian = torch.randn(tensor.shape, generator=random)
    return torch.linalg.svd(gaussian)[0] if ".U" in name else gaussian * deviation


def unset(*shape: int) -> nn.Parameter:
    """Return an uninitialised parameter."""
    return nn.Parameter(torch.empty(*shape))


class GatedStep(nn.Module):
    """The weights of a gated step of H units with E inputs, without those of a context."""

    kernel: Kernel = EAGER
    resets_after = False  # whether r acts on U h_{t-1} instead of h_{t-1}

    def _add_cell(self, H: int, E: int) -> None:
        self.W, self.W_z, self.W_r = unset(H, E), unset(H, E), unset(H, E)
        self.U, self.U_z, self.U_r = unset(H, H), unset(H, H), unset(H, H)
        self.b, self.b_z, self.b_r = unset(H), unset(H), unset(H)

    def inputs(self, e: Tensor) -> Tensor:
        """Return a word's part of the sums in z, r and h~, in this order, with biases; nodes × 3H."""
        We = self.kernel.matmul(e, torch.cat([self.W_z, self.W_r, self.W]))
        return We + torch.cat([self.b_z, self.b_r, self.b])

    def recurrence(self) -> Recurrence:
        """Return the recurrence with these weights."""
        return Recurrence(self.U_z, self.U_r, self.U, self.resets_after, self.kernel)

    def states(self, x: Tensor, c: Tensor | None, h_0: Tensor | None, active: Sequence[int]) -> Tensor:
        """Return all states h_t, packed; see `Recurrence.states`."""
        return self.recurrence().states(x, c, h_0, active)


class TranslationNetwork(Network):
    """A network that gives p(target | source) = softmax(G r + b_G) word by word."""

    @property
    @abstractmethod
    def output(self) -> Output:
        """G and b_G of the softmax; K × R and K."""

    @abstractmethod
    def predict(self, sources: Batch, targets: Batch, source_of: Tensor, drop: Drop) -> Tensor:
        """Return r, which predicts each of ``targets.packed()``; nodes × R. Arguments are as in `word_log_probs`."""

    def word_log_probs(
        self,
        sources: Batch,
        targets: Batch,
        source_of: Tensor,  # row of each target's source
        partition: Tensor | None = None,  # ids of words, to train large shortlists
        drop: Drop = keep,
    ) -> Tensor:
        """Return log p of all target words and ``</s>``, given the source and earlier words; ``targets.packed()``."""
        r = self.predict(sources, targets, source_of, drop)
        return learned_log_probs(r, self.output, targets.packed(), self.kernel, partition)

    def smoothed_log_probs(
        self,
        sources: Batch,
        targets: Batch,
        source_of: Tensor,
        partition: Tensor | None = None,
        drop: Drop = keep,
    ) -> tuple[Tensor, Tensor]:
        """Return `word_log_probs`, and what smoothed labels cost more for each unit of ε; see `logits_above_mean`."""
        r, output, words = self.predict(sources, targets, source_of, drop), self.output, targets.packed()
        log_probs = learned_log_probs(r, output, words, self.kernel, partition)
        return log_probs, logits_above_mean(r, output, words, partition)


def previous_words(targets: Batch, first: int = END_ID) -> Tensor:
    """Return y_{t-1} of each of ``targets.packed()``, where y_0 is `first`; nodes."""
    begins = torch.full_like(targets.ids[:, 0], first)
    return torch.cat([begins, *(targets.ids[:rows, t] for t, rows in enumerate(targets.active[1:]))])


def previous_embeddings(embeddings: Tensor, targets: Batch) -> Tensor:
    """Return e(y_{t-1}) of each of ``targets.packed()``, where e(y_0) = 0; nodes × E."""
    first = targets.active[0]
    nothing = embeddings.new_zeros(first, embeddings.shape[1])
    return torch.cat([nothing, embedding(previous_words(targets)[first:], embeddings)])


class LanguageNetwork(Network):
    """A language model: a network that reads only targets.

    Ids are the vocabulary's; ``<s>``, which precedes a sentence, has the id K and is never predicted.
    """

    @property
    def embeddings(self) -> Mapping[str, nn.Parameter]:
        """See `Network`; the last row is ``<s>``."""
        return {"target": self.get_parameter("embedding")}

    @property
    def vocabulary_size(self) -> int:
        """K, the number of words that can be predicted, including ``<unk>`` and ``</s>``."""
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
    """Copy a trained network without gradients; return it and the type of its values, except products.

    The type is float64 if products are, otherwise float32; products may be rounded further.
    """
    dtype = torch.float64 if product_dtype == torch.float64 else torch.float32
    model = copy.deepcopy(model).requires_grad_(False).to(device, dtype)
    model.use_kernel(Kernel(product_dtype))
    return model, dtype


class NetworkStepper(Stepper):
    """Steps a network with one softmax over packed rows.

    Matrix products are float32, bfloat16, or float64 to measure the others' error. States, gates and normalisation are
    float64 if products are, otherwise float32.
    """

    _model: Any  # a copy on the device

    def __init__(self, model: Any, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32) -> None:
        self.device = torch.device(device)
        self._product_dtype = dtype
        self._model, self._dtype = for_scoring(model, self.device, dtype)
        G, b_G = self._model.output
        self.vocabulary_size = len(b_G)
        self._output = OutputLayer(G, b_G, dtype, self._dtype)
        self._prepare()

    def _prepare(self) -> None:
        """Prepare the weights."""

    @abstractmethod
    def _read_out(self, encoded: Encoded, prefixes: Prefixes) -> Tensor:
        """Return r, which predicts the next word of each prefix; prefixes × R."""

    @torch.inference_mode()
    def next_log_probs(self, encoded: Encoded, prefixes: Prefixes, candidates: Candidates | None = None) -> Tensor:
        """See `Stepper`; only as exact as the products: bfloat16 affects the second decimal."""
        return self._output.log_probs(self._read_out(encoded, prefixes), prefixes.sources, candidates)

    @torch.inference_mode()
    def word_log_probs(
        self, encoded: Encoded, prefixes: Prefixes, rows: Tensor, words: Tensor, blocks: Sequence[NodeBlock]
    ) -> Tensor:
        """See `Stepper`; normalises each prefix once, whatever the number of words after it."""
        return self._output.chosen(self._read_out(encoded, prefixes), rows, words, blocks)

    def _weight(self, *matrices: Tensor) -> Tensor:
        """Stack matrices vertically, in the type of products."""
        return torch.cat(matrices).to(self._product_dtype).contiguous()

    def _matmul(self, rows: Tensor, matrix: Tensor) -> Tensor:
        """Multiply rows by a matrix; return the product in the type of states."""
        return linear(rows.to(self._product_dtype), matrix).to(self._dtype)


class WordPrefixes(NamedTuple):
    """Prefixes of sentences; one row each."""

    sources: Tensor  # row of each prefix's source, which is not read
    state: Tensor  # predicts the next word; its size depends on the network


class WordStepper(NetworkStepper):
    """Steps a language model, which ignores the source; its encoded sources are empty, sources × 0."""

    def encode(self, ids: Ids, lengths: Lengths) -> tuple[tuple[Tensor], Ints]:
        """See `Stepper`."""
        sources = build_trie(ids, lengths)
        return (torch.empty(sources.leaves, 0, device=self.device),), sources.leaf_of

    @torch.inference_mode()
    def start(self, encoded: tuple[Tensor]) -> WordPrefixes:
        """See `Stepper`."""
        rows = torch.arange(len(encoded[0]), device=self.device)
        return WordPrefixes(rows, self._begin().expand(len(rows), -1))

    @torch.inference_mode()
    def step(self, encoded: tuple[Tensor], prefixes: WordPrefixes, rows: Tensor, words: Tensor) -> WordPrefixes:
        """See `Stepper`."""
        return WordPrefixes(prefixes.sources[rows], self._next(prefixes.state.index_select(0, rows), words))

    @abstractmethod
    def _begin(self) -> Tensor:
        """Return the state that predicts the first word; 1 × size."""

    @abstractmethod
    def _next(self, states: Tensor, words: Tensor) -> Tensor:
        """Return the states after one more word each."""
