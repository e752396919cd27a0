"""A record for each architecture: how to make a small one, its equations as scalar loops, and how it learns.

All tests of this folder run for every record: a new network gets them by adding its own. The last record is of a network
as somebody would add it.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from moses_rnn.models.model import Model
from moses_rnn.networks.batches import Batch
from moses_rnn.networks.cells import ENCDEC_OF_CELLS, PLAIN
from moses_rnn.networks.config import Architecture, find_architectures
from moses_rnn.networks.vocabulary import END_ID
from tests.models import bigrams
from tests.models.pairs import SOURCE, TARGET
from tests.networks import (
    reference,
    reference_n_grams,
    reference_rnnlm,
    reference_rnnsearch,
    reference_seq2seq,
    reference_slots,
    reference_transformer,
)
from tests.networks.networks import CUSTOM, weights_of

WORDS = {"source": SOURCE, "target": TARGET}
ALL = {
    f"{row.key} of other cells" if row is ENCDEC_OF_CELLS else row.key: row
    for row in (*find_architectures(), bigrams.BIGRAMS)
}


class Training(NamedTuple):
    """What a network learns from ("table", "sentences" or "text"), and the options that are not those of every run."""

    material: str
    options: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Row:
    """What the tests need of a network.

    `config` is what config.json has of it, `switches` the combinations of switches and sizes that compute different
    functions. `log_prob` is a pair's score by scalar loops: of weights, of ids without end symbols, of the config.
    `learned` is the same by the module that learns. `dropped` matches the tensors that read what dropout leaves out;
    `constants` are further numbers of the equations that it may match. `shapeless` sizes change no tensor.
    """

    config: Mapping[str, Any]
    log_prob: Callable[[Any, list[int], list[int], Mapping[str, Any]], float]
    switches: Sequence[Mapping[str, Any]] = ({},)
    learned: Callable[..., torch.Tensor] | None = None
    dropped: str = ""
    trainings: Sequence[Training] = ()
    constants: Mapping[str, float] = dataclasses.field(default_factory=dict)
    shapeless: Sequence[str] = ()


class Case(NamedTuple):
    """A network with some of its switches."""

    key: str
    switches: Mapping[str, Any]

    @property
    def row(self) -> Row:
        """Of the table below."""
        return ROWS[self.key]

    @property
    def architecture(self) -> Architecture:
        """Of its key and format."""
        return ALL[self.key]

    def __str__(self) -> str:
        return "-".join([self.key.replace(" ", "_"), *(str(value) for value in self.switches.values() if value != "")])

    def make(self, dtype: torch.dtype = torch.float64, scale: float = 0.7, words: Mapping[str, Any] = WORDS) -> Any:
        """A network whose numbers are large enough for every term of every equation to matter; no bias is zero."""
        sides = self.architecture.sides
        sizes = {
            "vocabulary_size" if self.key == "cslm" else f"{side}_vocabulary_size": len(words[side]) for side in sides
        }
        config = self.architecture.config(**sizes, **self.row.config, **self.switches)
        model = self.architecture.module(config, seed=None).to(dtype)
        random = torch.Generator().manual_seed(2)
        for tensor in model.state_dict().values():
            tensor.copy_(torch.randn(tensor.shape, generator=random, dtype=torch.float64) * scale)
        return model.requires_grad_(False)

    def opened(self, network: Any = None, words: Mapping[str, Any] = WORDS, **how: Any) -> Model:
        """A network with its words, as if it were read from a folder."""
        network = network or self.make(torch.float32, words=words)
        return Model(self.architecture, network, {side: words[side] for side in self.architecture.sides}, **how)

    def expected(
        self, model: Any, pairs: Sequence[tuple[list[int], list[int]]], weights: Any = None, **how: float
    ) -> list[float]:
        """What pairs score by the equations."""
        weights, config = weights or weights_of(model), dataclasses.asdict(model.config)
        return [self.row.log_prob(weights, source, target, config, **how) for source, target in pairs]


# --- what learns --------------------------------------------------------------------------------------------------------


def of_translation(model, pairs, **how):
    """Of a network that writes word by word: log p of each pair, all in one batch."""
    order = sorted(range(len(pairs)), key=lambda i: -len(pairs[i][1]))
    sources = sorted({tuple(source) for source, _ in pairs}, key=len, reverse=True)
    targets = Batch.from_lists([pairs[i][1] for i in order])
    rows = torch.tensor([sources.index(tuple(pairs[i][0])) for i in order])
    words = model.word_log_probs(Batch.from_lists(sources), targets, rows, **how)
    place = torch.tensor(order)[targets.rows()[: len(words)]]  # without what has no slot
    return torch.zeros(len(pairs), dtype=words.dtype).index_add(0, place, words)


def of_smoothed(model, pairs, smoothing, partition=None):
    """Minus the cost of labels of which a share is spread over all words, of each pair."""
    sums = []
    for source, target in pairs:
        batches = Batch.from_lists([source]), Batch.from_lists([target])
        log_probs, above = model.smoothed_log_probs(*batches, torch.zeros(1, dtype=torch.int64), partition)
        sums.append((log_probs - smoothing * above).sum())
    return torch.stack(sums)


def of_slots(model, pairs, **how):
    S, config = model.config.slots, model.config
    sides = zip(zip(*pairs, strict=True), (config.source_vocabulary_size, config.target_vocabulary_size), strict=True)
    return model.scores(
        *(torch.tensor([[*ids, *[null] * (S - len(ids))] for ids in side]) for side, null in sides), **how
    )


def of_n_grams(model, pairs, **how):
    order, begin = model.config.order, model.vocabulary_size
    n_grams, rows = [], []
    for row, (_, target) in enumerate(pairs):
        padded = [*[begin] * (order - 1), *target, END_ID]
        n_grams += [padded[i : i + order] for i in range(len(target) + 1)]
        rows += [row] * (len(target) + 1)
    given = torch.tensor(n_grams)
    log_p, _ = model.log_probs(given[:, :-1], given[:, -1], **how)
    return torch.zeros(len(pairs), dtype=log_p.dtype).index_add(0, torch.tensor(rows), log_p)


def of_sentences(model, pairs, **how):
    order = sorted(range(len(pairs)), key=lambda i: -len(pairs[i][1]))
    batch = Batch.from_lists([pairs[i][1] for i in order])
    log_p = model.word_log_probs(batch, **how)
    return torch.zeros(len(pairs), dtype=log_p.dtype).index_add(0, torch.tensor(order)[batch.rows()], log_p)


# --- the equations ------------------------------------------------------------------------------------------------------


def by_words(distributions):
    """Of a reference that takes ids with their end symbols and gives each word's distribution."""

    def log_prob(weights, source, target, config, smoothing=0.0):
        target = [*target, END_ID]
        words = distributions(weights, [*source, END_ID], target, config)
        uniform = sum(math.log(p) / len(each) for each in words for p in each)
        return (1 - smoothing) * reference.log_prob(words, target) + smoothing * uniform

    return log_prob


def by_slots(score):
    return lambda weights, source, target, config: score(weights, source, target, config["slots"])


def by_contexts(network):
    return lambda weights, _, target, config: reference_n_grams.sentence_log_prob(
        network, weights, [*target, END_ID], config["order"]
    )


# --- the rows -----------------------------------------------------------------------------------------------------------

GATED = {"hidden_size": 5, "embedding_size": 3, "maxout_size": 4, "output_rank": 3, "variant": "custom"}
SENTENCES = {"unit": "sentences"}
SHARED = {"shared": True, "subwords": 24}
READ_WORDS_AND_MAXOUT = r"embedding$|G_r$|decoder\.G$"
PAPER, LAST = (
    {"summary": first, "first_step": step} for first, step in (("tanh", "zero-embedding"), ("last", "initial-state"))
)


def of_cell(cell, decoder_reset=None, encoder_reset=None):
    """A cell in both places, with other first steps; what means nothing for it is null."""
    own = {"leaky_share": 0.5 if cell == "leaky" else None, "forget_bias": 1.0 if "lstm" in cell else None}
    switches = {"cell": cell, "decoder_reset": decoder_reset, "encoder_reset": encoder_reset, **own}
    return [{**switches, **PAPER}, {**switches, **LAST}]


RESETS = itertools.product(("after", "before"), repeat=2)
CELLS = [*(of_cell(cell) for cell in PLAIN), *(of_cell("gru", *resets) for resets in RESETS)]

ROWS = {
    "encdec": Row(
        GATED,
        by_words(reference.distributions),
        CUSTOM,
        of_translation,
        READ_WORDS_AND_MAXOUT,
        [Training("table", {}), Training("sentences", {"architecture": "rnnenc"})],
    ),
    "encdec of other cells": Row(
        {**GATED, "unit": "phrases"},
        by_words(reference.distributions),
        list(itertools.chain(*CELLS)),
        of_translation,
        READ_WORDS_AND_MAXOUT,
        [Training("table", {"cell": cell}) for cell in PLAIN]
        + [Training("table", {"encoder_reset": "after"}), Training("sentences", {"architecture": "rnnenc", "cell": "lstm"})],
    ),
    "rnnsearch": Row(
        {"hidden_size": 5, "embedding_size": 3, "alignment_size": 4, "maxout_size": 4, **SENTENCES},
        by_words(reference_rnnsearch.distributions),
        [{"phases": phases, "output_rank": rank} for phases in ("paper", "groundhog") for rank in (0, 3)],
        of_translation,
        READ_WORDS_AND_MAXOUT,
        [
            Training("sentences", {"architecture": "rnnsearch", "alignment_size": 5, "subwords": 24}),
            Training("sentences", {"architecture": "rnnsearch", "alignment_size": 5}),
        ],
    ),
    "seq2seq": Row(
        {"hidden_size": 5, "embedding_size": 3, **SENTENCES},
        by_words(reference_seq2seq.distributions),
        [
            {"layers": layers, "source_order": order, "peepholes": peepholes}
            for layers, order, peepholes in (
                (2, "reversed", True),
                (2, "forward", False),
                (1, "reversed", False),
                (3, "forward", True),
            )
        ],
        of_translation,
        r"\.W_|decoder\.G$",
        [Training("sentences", {"architecture": "seq2seq"})],
    ),
    "transformer": Row(
        {"hidden_size": 12, "feed_forward_size": 7, "layers": 2, **SENTENCES},
        by_words(reference_transformer.distributions),
        [{"heads": heads, "shared": False} for heads in (2, 3, 1)],
        of_translation,
        r"W_O|W_2|b_2|^input_scale$",
        [
            Training("sentences", {"architecture": "transformer", "hidden_size": 8, "feed_forward_size": 9, "heads": 1, "layers": 2}),
            Training("sentences", {"architecture": "transformer", "hidden_size": 8, "feed_forward_size": 9, "heads": 1, "layers": 1, **SHARED}),
        ],
        {"input_scale": 1.0},
        ["heads"],
    ),
    "cstm": Row(
        {"embedding_size": 3, "first_size": 6, "second_size": 5, "unit": "phrases"},
        by_slots(reference_slots.cstm_log_prob),
        [{"slots": slots} for slots in (6, 7)],  # no pair has more than six words, and one has
        of_translation,
        "W_2|^G_",
        [Training("table", {"architecture": "cstm", "first_size": 6, "second_size": 5, "slots": 6})],
    ),
    "ranker": Row(
        {"embedding_size": 3, "hidden_size": 6, "corrupt": "last", "unit": "phrases"},
        by_slots(reference_slots.ranker_score),
        [{"slots": slots} for slots in (6, 7)],
        of_slots,
        "^w$",
        [Training("table", {"architecture": "ranker", "hidden_size": 16, "corrupt": "any", "slots": 6})],
    ),
    "cslm": Row(
        {"embedding_size": 4, "first_size": 8, "second_size": 4},  # inner sizes of 4n: else a row's place counts in BLAS
        by_contexts(reference_n_grams.cslm),
        [{"order": order} for order in (4, 2)],
        of_n_grams,
        "W_2|^G$",
        [Training("text", {"architecture": "cslm", "order": 3, "embedding_size": 4, "first_size": 6, "second_size": 5})],
    ),
    "bengio": Row(
        {"embedding_size": 4, **SENTENCES},
        by_contexts(reference_n_grams.bengio),
        [
            {"order": order, "hidden_size": hidden, "direct": direct}
            for order, hidden, direct in ((4, 8, True), (4, 5, False), (4, 0, True), (2, 5, True))
        ],
        of_n_grams,
        "^W|^G$",
        [Training("text", {"architecture": "bengio", "order": 3, "embedding_size": 4, "hidden_size": 5})],
    ),
    "rnnlm": Row(
        SENTENCES,
        lambda weights, _, target, config: sum(reference_rnnlm.log_probs(weights, [*target, END_ID])),
        [{"hidden_size": hidden} for hidden in (5, 1, 33)],
        of_sentences,
        "embedding$|^G$",
        [Training("text", {"architecture": "rnnlm", "hidden_size": 5, "bptt": bptt}) for bptt in (0, 2)]
        + [Training("text", {"architecture": "rnnlm", "hidden_size": 5, "subwords": 12, "shortlist": None})],
    ),
    "bigrams": Row({"unit": "phrases"}, bigrams.log_prob),
}  # fmt: skip
CASES = [Case(key, switches) for key, row in ROWS.items() for switches in row.switches]
FIRST = [Case(key, row.switches[0]) for key, row in ROWS.items()]
