"""Everything that can be chosen about training, the presets, and the requests that override them.

Nothing here needs torch: the command line shows the presets in its --help.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from moses_rnn.errors import MosesRnnError

MINUTES_OF_THREE_DAYS = 3 * 24 * 60.0
EACH_EPOCH = 1 << 40  # examples between two evaluations, of which there is one an epoch at least


class UnfitOption(MosesRnnError, ValueError):
    """An option that does not go with the others.

    Args:
        name: of the request's field.
        why: what is wrong with it.
    """

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name}: {why}")
        self.name, self.why = name, why


def refuse_foreign(given: Iterable[str], own: Collection[str], whose: str) -> None:
    """Raise UnfitOption for options that a network does not have, and that would do nothing."""
    for name in sorted(given):
        if name not in own:
            raise UnfitOption(name, f"{whose} has no such option")


@dataclass(frozen=True)
class TrainingConfig:
    """Optimiser, loss, batches and stopping.

    `reduction` scales the gradient: "pair-mean" is the paper's equation 4 (log-likelihood averaged over the phrase
    pairs of a batch), "token-mean" averages over target words, "sum" is what the released code does. `clip_norm` bounds
    the gradient's global L2 norm (0: no bound; the released code: 1). `sort_batches` batches are drawn together and cut
    by length, so that phrases of one batch are about equally long.
    """

    optimiser: str = "adadelta"  # or another of CUSTOMARY_RATES
    learning_rate: float = 1.0
    rho: float = 0.95  # Adadelta
    epsilon: float = 1e-6  # Adadelta; inside both roots
    schedule: str = "plateau"  # how the learning rate falls, see training/schedules.py
    decay_on_plateau: float = 1.0  # the schedule plateau's factor after an evaluation without gain
    batch_size: int = 64  # phrase pairs
    sort_batches: int = 10
    warm_up: int = 0  # minibatches over which the learning rate rises to its value
    cool_down: float = 0.0  # the last share of the budget, over which the learning rate falls to zero
    averaging: float = 0.0  # the last share of the steps whose weights are averaged, about; 0: the last weights alone
    weight_decay: float = 0.0  # Adam and SGD; of matrices, times the learning rate
    dropout: float = 0.0  # share of units left out in a step: of embeddings and maxout, or a CSLM's layers
    initial_deviation: float = 0.01  # of the matrices that are not recurrent
    sampled_words: int = 0  # drawn for each minibatch to estimate the normalisation by; 0: all words
    partition_words: int = 0  # words that are normalised over at most, see training/partitions.py; 0: all of them
    reshuffle: bool = False  # partitions: a new order of the pairs in each epoch, and so new ones
    reduction: str = "pair-mean"
    clip_norm: float = 1.0
    precision: str = "fp32"  # of matrix products; or "bf16": weights, states, gates and losses stay float32
    compiled: bool = False  # whether torch.compile fuses the work between products; changes the last digits
    native: str = ""  # the native core's instruction set if it computes, which changes the last digits too; "": torch
    seed: int = 1
    max_epochs: float = 0.0  # 0: no limit
    max_minutes: float = MINUTES_OF_THREE_DAYS  # 0: no limit
    evaluate_every: int = 500_000  # pairs
    patience: int = 20  # evaluations without gain before stopping
    save_minutes: float = 10.0
    threads: int = 1  # that share a minibatch, see training/threads.py; changes the last digits
    accumulate: int = 1  # parts of a minibatch, one after the other, see training/gradients.py; likewise
    source_embeddings: str = ""  # SHA-256 of the file that they begin as, see training/embeddings.py; "": random
    target_embeddings: str = ""
    freeze_embeddings: bool = False  # those of a file are not learned

    def describe(self, unit: str = "pairs") -> str:
        """The choices in words, for a log."""
        limits = [f"{self.max_epochs:g} epoch{'s' * (self.max_epochs != 1)}"] * bool(self.max_epochs)
        limits += [f"{self.max_minutes:g} minutes"] * bool(self.max_minutes)
        limits += [f"{self.patience} evaluations without gain"]
        also = [f"schedule {self.schedule}"] * (self.schedule != "plateau")
        also += [f"risen over {self.warm_up:,} minibatches"] * bool(self.warm_up)
        also += [f"falling in the last {self.cool_down:.0%}"] * bool(self.cool_down)
        also += [f"weights averaged over about the last {self.averaging:.0%} of the steps"] * bool(self.averaging)
        also += [f"dropout {self.dropout:g}"] * bool(self.dropout)
        also += [f"weight decay {self.weight_decay:g}"] * bool(self.weight_decay)
        also += [f"partitions of {self.partition_words:,} words" + ", reshuffled" * self.reshuffle] * (
            self.partition_words > 0
        )
        return (
            f"{', '.join([self.optimiser, f'learning rate {self.learning_rate:g}', *also])}, "
            f"{self.batch_size} {unit} a minibatch{f' in {self.accumulate} parts' if self.accumulate > 1 else ''}, "
            f"{self.reduction} gradient clipped at {self.clip_norm:g}, {self.precision}, seed {self.seed}; "
            f"evaluated {self._describe_evaluations(unit)}; ends after {' or '.join(limits)}"
            f"{f'; by the native core, {self.native}' if self.native else ''}"
        )

    def _describe_evaluations(self, unit: str) -> str:
        return "after each epoch" if self.evaluate_every == EACH_EPOCH else f"every {self.evaluate_every:,} {unit}"

    def course(self) -> dict[str, object]:
        """The choices that decide the weights after a given number of steps: a resumed run must share them."""
        return {key: value for key, value in asdict(self).items() if key not in LIMITS}


# may change when a run is resumed
LIMITS = {"max_epochs", "max_minutes", "patience", "save_minutes", "threads", "accumulate"}


ALL = 1 << 30  # words: of a shortlist that only `min_count` bounds
LETTERS = {"hidden_size": "H", "embedding_size": "E", "alignment_size": "A", "maxout_size": "M", "output_rank": "R"}
LETTERS |= {"layers": "L"}


@dataclass(frozen=True)
class Preset:
    """Sizes and switches of a network, as its config has them, with the training that suits them."""

    network: Mapping[str, Any]
    training: TrainingConfig
    shortlist: int = ALL  # words at most
    words_read: int = 0  # in the shortlist of the side that is read; 0: as many
    min_count: int = 1  # of a word that is in it
    learning: Mapping[str, float] = field(default_factory=dict)  # how a language model learns, beside the optimiser

    def __str__(self) -> str:
        sizes = ", ".join(f"{LETTERS.get(name, name)} {value}" for name, value in self.network.items())
        training = self.training
        limit = f", at most {training.max_minutes / 60:g} hours" if training.max_minutes else ""
        return f"{sizes}; {self._shortlists}; {training.optimiser}, {training.batch_size} a minibatch{limit}"

    @property
    def _shortlists(self) -> str:
        if self.shortlist == ALL:
            return f"words seen {self.min_count} times"
        return " and ".join(f"{most:,}" for most in (self.words_read, self.shortlist) if most) + " words"


# Zeiler (2012) has none; Kingma and Ba (2015), algorithm 1; Sutskever et al. (2014), section 3.4
CUSTOMARY_RATES = {"adadelta": 1.0, "adam": 1e-3, "sgd": 0.7}


def for_optimiser(config: TrainingConfig, optimiser: str) -> TrainingConfig:
    """The same training with another optimiser, and the learning rate that is customary for it."""
    if optimiser == config.optimiser:
        return config
    rate = CUSTOMARY_RATES[optimiser]
    decay = 1.0 if optimiser == "adadelta" else 0.5  # Adadelta finds its own steps
    return replace(config, optimiser=optimiser, learning_rate=rate, decay_on_plateau=decay)


PRESETS = {
    # section 4.1 of the paper: 1000 hidden units, rank-100 matrices, 15 000 words, Adadelta, 64 pairs, three days
    "paper": Preset(
        {"hidden_size": 1000, "embedding_size": 100, "maxout_size": 500, "output_rank": 100}, TrainingConfig(), 15_000
    ),
    # for two CPU cores and half an hour; chosen by the sweep in docs/training.md
    "small": Preset(
        {"hidden_size": 256, "embedding_size": 64, "maxout_size": 128, "output_rank": 64},
        TrainingConfig(
            optimiser="adam",
            learning_rate=4e-3,
            decay_on_plateau=0.5,
            cool_down=0.5,
            averaging=0.1,
            initial_deviation=0.1,
            batch_size=128,
            max_minutes=30.0,
            evaluate_every=100_000,
            patience=6,
            save_minutes=2.0,
        ),
        5_000,
    ),
}


# What --preset small cost on held-out pairs of Multi30k after some passes over the table, on the way through its 30
# minutes (docs/training.md)
SHARES_OF_UNIGRAMS = ((0.5, 0.18), (1.0, 0.15), (2.0, 0.13), (3.0, 0.12), (4.2, 0.11))


@dataclass(frozen=True, kw_only=True)
class LearningRequest:
    """What a request for any network may override; None leaves it to the preset."""

    preset: str | None  # None: "paper" on a GPU, else "small"
    optimiser: str | None
    learning_rate: float | None
    schedule: str | None
    batch_size: int | None
    accumulate: int | None
    warm_up: int | None
    cool_down: float | None
    averaging: float | None
    weight_decay: float | None
    dropout: float | None
    initial_deviation: float | None
    clip_norm: float | None
    precision: str  # or "auto"
    max_minutes: float | None
    max_epochs: float | None
    evaluate_every: int | None
    patience: int | None
    seed: int
    device: str
    threads: int | None  # None: one for each core
    restart: bool
    quiet: bool

    @property
    def on_gpu(self) -> bool:
        """Whether the device is one."""
        return self.device.startswith("cuda")

    @property
    def preset_name(self) -> str:
        """The requested preset, or the one that suits the device."""
        return self.preset or ("paper" if self.on_gpu else "small")

    def learning(self, preset: TrainingConfig) -> TrainingConfig:
        """The preset's training with what the request overrides.

        Raises:
            UnfitOption: weights are to decay under an optimiser that has no such thing.
        """
        config = for_optimiser(preset, self.optimiser or preset.optimiser)
        if self.weight_decay and config.optimiser == "adadelta":
            raise UnfitOption("weight_decay", "expected the optimiser adam or sgd, found adadelta")
        return replace(config, **self.given(*LEARNING), seed=self.seed)

    def given(self, *names: str) -> dict[str, Any]:
        """Those of these fields that override the preset."""
        return {name: value for name in names if (value := getattr(self, name)) is not None}


LEARNING = (
    "learning_rate",
    "schedule",
    "batch_size",
    "accumulate",
    "warm_up",
    "cool_down",
    "averaging",
    "weight_decay",
    "dropout",
    "initial_deviation",
    "clip_norm",
    "max_minutes",
    "max_epochs",
    "evaluate_every",
    "patience",
)


@dataclass(frozen=True, kw_only=True)
class PhraseModelRequest(LearningRequest):
    """A network to train on a phrase table."""

    phrase_table: str
    shortlist: int | None
    source_factor: int | None
    target_factor: int | None
    architecture: str  # see training/architectures.py
    variant: str  # "paper" or "groundhog", unless these switches say otherwise
    summary: str | None
    first_step: str | None
    decoder_reset: str | None
    cell: str  # see training/cells.py
    encoder_reset: str | None
    leaky_share: float | None
    forget_bias: float | None
    inverse: bool
    hidden_size: int | None
    embedding_size: int | None
    maxout_size: int | None
    output_rank: int | None
    slots: int | None
    first_size: int | None
    second_size: int | None
    corrupt: str | None
    source_embeddings: str | None
    target_embeddings: str | None
    freeze_embeddings: bool
    sampled_words: int | None
    compiled: bool | None
    max_length: int
    held_out: int
    layout: str  # of the table, see formats/tab_separated.py
