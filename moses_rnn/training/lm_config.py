"""What can be chosen about training language models: networks, presets, the request that overrides them.

Nothing here needs torch: the command line shows the presets in its --help.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from moses_rnn.training.config import (
    CSLM_PRESETS,
    EACH_EPOCH,
    CslmPreset,
    LearningRequest,
    TrainingConfig,
    UnfitOption,
    refuse_foreign,
)
from moses_rnn.training.sentence_config import ALL, LETTERS

LEARNING = "self_normalise", "bptt"  # how a network learns, beside the optimiser


@dataclass(frozen=True)
class LanguageModelPreset:
    """Sizes and switches of a network, as its config has them, with the training that suits them."""

    network: Mapping[str, object]
    training: TrainingConfig
    learning: Mapping[str, float] = field(default_factory=dict)  # of LEARNING, what the network knows
    shortlist: int = ALL  # words at most
    min_count: int = 1  # of a word that is in it

    def __str__(self) -> str:
        sizes = ", ".join(f"{LETTERS.get(name, name)} {value}" for name, value in self.network.items())
        words = f"words seen {self.min_count} times" if self.shortlist == ALL else f"{self.shortlist:,} words"
        return f"{sizes}; {words}; {self.training.optimiser}, {self.training.batch_size} a minibatch"


def _of_cslm(preset: CslmPreset) -> LanguageModelPreset:
    sizes = {name: getattr(preset, name) for name in SIZES["cslm"]}
    learning = {"self_normalise": preset.learning.self_normalise}
    return LanguageModelPreset(sizes, preset.training, learning, preset.shortlist)


# of each network: sizes, and switches with them
SIZES: dict[str, tuple[str, ...]] = {
    "cslm": ("order", "embedding_size", "first_size", "second_size"),
    "bengio": ("order", "embedding_size", "hidden_size", "direct"),
    "rnnlm": ("hidden_size",),
}
NETWORK_OPTIONS = tuple(dict.fromkeys(name for sizes in SIZES.values() for name in sizes))
_SMALL = replace(
    CSLM_PRESETS["small"].training,
    evaluate_every=EACH_EPOCH,
    cool_down=0.5,
    averaging=0.1,
    patience=3,
)

NETWORKS: dict[str, dict[str, LanguageModelPreset]] = {
    "cslm": {name: _of_cslm(preset) for name, preset in CSLM_PRESETS.items()},
    # Bengio et al. 2003, sections 3.2 and 4: MLP1 on the Brown corpus; steps along sums, as if one after each word
    "bengio": {
        "paper": LanguageModelPreset(
            {"order": 5, "embedding_size": 60, "hidden_size": 50, "direct": True},
            TrainingConfig(
                optimiser="sgd",
                learning_rate=1e-3,
                schedule="inverse-time",
                weight_decay=1e-4,
                reduction="sum",
                clip_norm=0.0,
                evaluate_every=EACH_EPOCH,
                patience=10,
            ),
            {"self_normalise": 0.0},
            min_count=4,
        ),
        "small": LanguageModelPreset(
            {"order": 5, "embedding_size": 64, "hidden_size": 128, "direct": False},
            replace(_SMALL, learning_rate=3e-3, max_epochs=12.0),
            {"self_normalise": 0.0},
            min_count=2,
        ),
    },
    # Mikolov et al. 2010, section 3: 250/5, which has the words seen five times; a step after each sentence
    "rnnlm": {
        "paper": LanguageModelPreset(
            {"hidden_size": 250},
            TrainingConfig(
                optimiser="sgd",
                learning_rate=0.1,
                schedule="newbob",
                initial_deviation=0.1,
                batch_size=1,
                clip_norm=0.0,
                evaluate_every=EACH_EPOCH,
                max_minutes=0.0,
            ),
            {"bptt": 1},
            min_count=5,
        ),
        "small": LanguageModelPreset(
            {"hidden_size": 256},
            replace(_SMALL, learning_rate=4e-3, initial_deviation=0.1, batch_size=64, sort_batches=20, max_epochs=12.0),
            {"bptt": 0},
            min_count=2,
        ),
    },
}
SHOWN = {
    **{f"cslm, {name}": preset for name, preset in CSLM_PRESETS.items()},
    **{f"{network}, {name}": NETWORKS[network][name] for network in ("bengio", "rnnlm") for name in ("paper", "small")},
}


@dataclass(frozen=True, kw_only=True)
class LanguageModelRequest(LearningRequest):
    """A language model to train on texts."""

    texts: tuple[str, ...]
    model: Path
    network: str
    shortlist: int | None
    min_count: int | None
    order: int | None
    embedding_size: int | None
    first_size: int | None
    second_size: int | None
    hidden_size: int | None
    direct: bool | None
    dev: str | None
    held_out: int | None
    self_normalise: float | None
    bptt: int | None

    def chosen_preset(self) -> LanguageModelPreset:
        """The requested preset, or the one that suits the device, with what the request overrides.

        Raises:
            UnfitOption: something is given that the network does not have, or it would have nothing to predict by.
        """
        preset = NETWORKS[self.network][self.preset_name]
        network, learning = self.given(*NETWORK_OPTIONS), self.given(*LEARNING)
        refuse_foreign((*network, *learning), {*preset.network, *preset.learning}, f"--network {self.network}")
        network = {**preset.network, **network}
        if not network.get("hidden_size", True) and not network.get("direct"):
            raise UnfitOption("hidden_size", "only --network bengio with direct connections predicts by 0 hidden units")
        return replace(
            preset,
            network=network,
            learning={**preset.learning, **learning},
            training=self.learning(preset.training),
            **self.given("shortlist", "min_count"),
        )
