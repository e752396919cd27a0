"""What can be chosen about training on sentences: architectures, presets, the request that overrides them.

Nothing here needs torch: the command line shows the presets in its --help.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from moses_rnn.formats.rare_words import COPYABLE, NOALIGN
from moses_rnn.training.config import EACH_EPOCH, LearningRequest, Preset, TrainingConfig, UnfitOption, refuse_foreign

PAPER = TrainingConfig(batch_size=80, sort_batches=20, max_minutes=5 * 24 * 60.0)
# Multi30k, five minutes of one core, rnnsearch; held-out nats per token: 2.17 with rate 0.001 halved on a plateau and
# neither cooling down nor averaging, 1.23 with rate 0.003, 1.21 with 0.006 (docs/training.md)
SMALL = TrainingConfig(
    optimiser="adam",
    learning_rate=4e-3,
    decay_on_plateau=0.5,
    cool_down=0.5,
    averaging=0.1,
    dropout=0.3,
    initial_deviation=0.1,
    batch_size=64,
    sort_batches=20,
    max_epochs=12.0,
    max_minutes=60.0,
    evaluate_every=EACH_EPOCH,
    patience=5,
    save_minutes=2.0,
)

ARCHITECTURES: dict[str, dict[str, Preset]] = {
    # Bahdanau et al. 2015, appendix A.2.3 and B: 30 000 words, Adadelta, 80 sentences, five days
    "rnnsearch": {
        "paper": Preset(
            {"hidden_size": 1000, "embedding_size": 620, "alignment_size": 1000, "maxout_size": 500, "output_rank": 0},
            PAPER,
            30_000,
        ),
        "small": Preset(
            {"hidden_size": 256, "embedding_size": 128, "alignment_size": 256, "maxout_size": 128, "output_rank": 0},
            SMALL,
            min_count=2,
        ),
    },
    # Sutskever et al. 2014, sections 3.1 and 3.4; sorted widely, for batches of similar length
    "seq2seq": {
        "paper": Preset(
            {"layers": 4, "hidden_size": 1000, "embedding_size": 1000},
            TrainingConfig(
                optimiser="sgd",
                learning_rate=0.7,
                schedule="half-epochs",
                initial_deviation=0.08,
                batch_size=128,
                sort_batches=20,
                clip_norm=5.0,
                max_epochs=7.5,
                max_minutes=0.0,
            ),
            80_000,
            words_read=160_000,
        ),
        "small": Preset(
            {"layers": 2, "hidden_size": 256, "embedding_size": 128},
            # Without attention or a summary at each step, what the paper's ±0.08 starts learns slowly at this width:
            # held-out nats after two epochs 2.64, with ±0.16 2.51, ±0.25 2.40, ±0.4 2.59
            replace(SMALL, initial_deviation=0.25, clip_norm=5.0, max_epochs=18.0),
            min_count=2,
        ),
    },
    # Bahdanau's RNNenc: the network of the phrase model, as the released code has it
    "rnnenc": {
        "paper": Preset(
            {"hidden_size": 1000, "embedding_size": 620, "maxout_size": 500, "output_rank": 620},
            PAPER,
            30_000,
        ),
        "small": Preset(
            {"hidden_size": 256, "embedding_size": 128, "maxout_size": 128, "output_rank": 128},
            SMALL,
            min_count=2,
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
    source_order: str | None
    peepholes: bool | None
    layers: int | None
    hidden_size: int | None
    embedding_size: int | None
    alignment_size: int | None
    maxout_size: int | None
    output_rank: int | None
    source_words: int | None
    target_words: int | None
    min_count: int | None
    max_length: int  # words of a side; longer pairs are left out; 0: no limit
    partition_words: int | None
    reshuffle: bool
    rare: str | None  # a kind of annotation
    rare_window: int | None
    alignment: str | None  # of the texts, a line for each pair
    dev_alignment: str | None

    def chosen_preset(self) -> Preset:
        """The requested preset, or the one that suits the device, with what the request overrides.

        Raises:
            UnfitOption: something is given that the architecture does not have, or that says nothing.
        """
        preset = ARCHITECTURES[self.architecture][self.preset_name]
        network = self.given(*NETWORK_OPTIONS)
        own = {*preset.network, *SWITCHES[self.architecture]}
        refuse_foreign(network, own, f"--architecture {self.architecture}")
        if self.reshuffle and not self.partition_words:
            raise UnfitOption("reshuffle", "is for partition_words: without, each epoch has its own order")
        self._check_rare()
        training = replace(
            self.learning(preset.training), **self.given("partition_words"), reshuffle=bool(self.reshuffle)
        )
        return replace(
            preset,
            network={**preset.network, **network},
            training=training,
            **self.given("min_count"),
        )

    def _check_rare(self) -> None:
        if self.rare is None:
            for name in self.given("rare_window", "alignment", "dev_alignment"):
                raise UnfitOption(name, "is for --rare")
        elif self.architecture == "rnnenc":
            raise UnfitOption("rare", "--architecture rnnenc has no such option")
        elif self.rare_window and self.rare in (NOALIGN, COPYABLE):
            raise UnfitOption("rare_window", f"--rare {self.rare} writes no distances")
        elif self.dev_alignment and not self.dev:
            raise UnfitOption("dev_alignment", "is for --dev")
        elif self.rare != NOALIGN:
            self._check_alignments()

    def _check_alignments(self) -> None:
        for needed, option in ((True, "alignment"), (bool(self.dev), "dev_alignment")):
            if needed and not getattr(self, option):
                needs = f"{self.rare} needs --{option.replace('_', '-')}, by which words are annotated"
                raise UnfitOption("rare", needs)


SIZES = "layers", "hidden_size", "embedding_size", "alignment_size", "maxout_size", "output_rank"
SWITCHES: dict[str, tuple[str, ...]] = {
    "rnnsearch": ("phases",),
    "seq2seq": ("source_order", "peepholes"),
    "rnnenc": (),
}
NETWORK_OPTIONS = *SIZES, *(switch for switches in SWITCHES.values() for switch in switches)
