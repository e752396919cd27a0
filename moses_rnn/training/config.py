"""How a network is trained: optimiser, loss, batches and stopping; and a preset of all that with a network's sizes.

Nothing here needs torch: the command line shows the presets in its --help.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

MINUTES_OF_THREE_DAYS = 3 * 24 * 60.0
EACH_EPOCH = 1 << 40  # examples between two evaluations, of which there is one an epoch at least


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
    partition_words: int = 0  # words that are normalised over at most, see training/pairs.py; 0: all of them
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
    threads: int = 1  # that share a minibatch, see training/ranks.py; changes the last digits
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
