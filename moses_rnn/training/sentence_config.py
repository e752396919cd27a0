"""What can be chosen about training on sentences: architectures, presets, the request that overrides them.

Nothing here needs torch: the command line shows the presets in its --help.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from moses_rnn.training.config import LearningRequest, TrainingConfig

ALL = 1 << 30  # words: of a shortlist that only `min_count` bounds


@dataclass(frozen=True)
class SentencePreset:
    """Sizes and switches of a network, as its config has them, with the training that suits them."""

    network: Mapping[str, object]
    training: TrainingConfig
    words: int = ALL  # of each side's shortlist at most
    min_count: int = 1  # of a word that is in it
    max_length: int = 50  # words of a side; longer pairs are left out

    def __str__(self) -> str:
        sizes = ", ".join(f"{LETTERS.get(name, name)} {value}" for name, value in self.network.items())
        most = f"{self.words:,} words" if self.words < ALL else f"words seen {self.min_count} times"
        return f"{sizes}; {most}; {self.training.optimiser}, {self.training.batch_size} a minibatch"


LETTERS = {"hidden_size": "H", "embedding_size": "E", "alignment_size": "A", "maxout_size": "M", "output_rank": "R"}
LETTERS |= {"layers": "L"}

PAPER = TrainingConfig(batch_size=80, sort_batches=20, max_minutes=5 * 24 * 60.0)
SMALL = TrainingConfig(
    optimiser="adam",
    learning_rate=1e-3,
    decay_on_plateau=0.5,
    dropout=0.3,
    initial_deviation=0.1,
    batch_size=64,
    sort_batches=20,
    max_minutes=60.0,
    evaluate_every=ALL,  # after each epoch
    patience=5,
    save_minutes=2.0,
)

ARCHITECTURES: dict[str, dict[str, SentencePreset]] = {
    # Bahdanau et al. 2015, appendix A.2.3 and B: 30 000 words, Adadelta, 80 sentences, five days
    "rnnsearch": {
        "paper": SentencePreset(
            {"hidden_size": 1000, "embedding_size": 620, "alignment_size": 1000, "maxout_size": 500, "output_rank": 0},
            PAPER,
            words=30_000,
        ),
        "small": SentencePreset(
            {"hidden_size": 256, "embedding_size": 128, "alignment_size": 256, "maxout_size": 128, "output_rank": 0},
            SMALL,
            min_count=2,
        ),
    },
    # the same paper's RNNenc: the network of the phrase model, as the released code has it
    "rnnenc": {
        "paper": SentencePreset(
            {"hidden_size": 1000, "embedding_size": 620, "maxout_size": 500, "output_rank": 620}, PAPER, words=30_000
        ),
        "small": SentencePreset(
            {"hidden_size": 256, "embedding_size": 128, "maxout_size": 128, "output_rank": 128}, SMALL, min_count=2
        ),
    },
}


@dataclass(frozen=True, kw_only=True)
class SentenceRequest(LearningRequest):
    """A network to train on two line-parallel texts, PREFIX.SOURCE and PREFIX.TARGET."""

    prefix: str
    source: str  # ending of the source's file
    target: str
    architecture: str
    inverse: bool  # reads the target and writes the source
    model: Path
    dev: str | None  # a prefix; None: some of the pairs are held out
    held_out: int
    phases: str | None
    hidden_size: int | None
    embedding_size: int | None
    alignment_size: int | None
    maxout_size: int | None
    output_rank: int | None
    initial_deviation: float | None
    source_words: int | None
    target_words: int | None
    min_count: int | None
    max_length: int | None

    def chosen_preset(self) -> SentencePreset:
        """The requested preset, or the one that suits the device, with what the request overrides.

        Raises:
            ValueError: something is given that the architecture does not have.
        """
        preset = ARCHITECTURES[self.architecture][self.preset or ("paper" if self.on_gpu else "small")]
        network = self.given(*NETWORK_OPTIONS)
        foreign = sorted(name for name in network if name not in {*preset.network, *SWITCHES[self.architecture]})
        if foreign:
            option = "--" + foreign[0].replace("_", "-")
            raise ValueError(f"{option}: --architecture {self.architecture} has no such size or switch")
        training = replace(self.learning(preset.training), **self.given("initial_deviation"))
        return replace(
            preset,
            network={**preset.network, **network},
            training=training,
            **self.given("min_count", "max_length"),
        )


NETWORK_OPTIONS = "hidden_size", "embedding_size", "alignment_size", "maxout_size", "output_rank", "phases"
SWITCHES: dict[str, tuple[str, ...]] = {"rnnsearch": ("phases",), "rnnenc": ()}
