"""What can be chosen about training language models: networks, presets, the request that overrides them.

Nothing here needs torch: the command line shows the presets in its --help.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from moses_rnn.training.config import EACH_EPOCH, LearningRequest, Preset, TrainingConfig, UnfitOption, refuse_foreign

LEARNING = "self_normalise", "bptt"  # how a network learns, beside the optimiser
# α of a penalty α (log Z)² (Devlin et al. 2014), without which a decoder that does not normalise sees arbitrary values
_UNPENALISED = {"self_normalise": 0.0}
_CSLM = TrainingConfig(
    optimiser="adam",
    learning_rate=1e-3,
    decay_on_plateau=0.5,
    batch_size=128,
    evaluate_every=20_000_000,  # or after each epoch, if that is shorter
    patience=10,
)
_SMALL_CSLM = replace(_CSLM, initial_deviation=0.1, dropout=0.3, max_minutes=30.0, save_minutes=2.0)
_SMALL = replace(_SMALL_CSLM, evaluate_every=EACH_EPOCH, cool_down=0.5, averaging=0.1, patience=3)

NETWORKS: dict[str, dict[str, Preset]] = {
    "cslm": {
        # section 4.1.2 of the paper, which does not name the optimiser
        "paper": Preset(
            {"order": 7, "embedding_size": 512, "first_size": 1536, "second_size": 1024},
            _CSLM,
            15_000,
            learning=_UNPENALISED,
        ),
        # for two CPU cores and tens of thousands of sentences, which the paper's network would learn by heart
        "small": Preset(
            {"order": 7, "embedding_size": 128, "first_size": 256, "second_size": 256},
            _SMALL_CSLM,
            15_000,
            learning=_UNPENALISED,
        ),
    },
    # Bengio et al. 2003, sections 3.2 and 4: MLP1 on the Brown corpus; steps along sums, as if one after each word
    "bengio": {
        "paper": Preset(
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
            learning=_UNPENALISED,
            min_count=4,
        ),
        "small": Preset(
            {"order": 5, "embedding_size": 64, "hidden_size": 128, "direct": False},
            replace(_SMALL, learning_rate=3e-3, max_epochs=12.0),
            learning=_UNPENALISED,
            min_count=2,
        ),
    },
    # Mikolov et al. 2010, section 3: 250/5, which has the words seen five times; a step after each sentence
    "rnnlm": {
        "paper": Preset(
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
            learning={"bptt": 1},
            min_count=5,
        ),
        "small": Preset(
            {"hidden_size": 256},
            replace(_SMALL, learning_rate=4e-3, initial_deviation=0.1, batch_size=64, sort_batches=20, max_epochs=12.0),
            learning={"bptt": 0},
            min_count=2,
        ),
    },
}
NETWORK_OPTIONS = tuple(dict.fromkeys(name for presets in NETWORKS.values() for name in presets["paper"].network))


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

    def chosen_preset(self) -> Preset:
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
