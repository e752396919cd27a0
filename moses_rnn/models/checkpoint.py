"""A trained RNN Encoder-Decoder as a folder: config.json, model.safetensors, source.vocab, target.vocab."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import torch

from moses_rnn.models.encdec import SWITCHES, EncDec, EncDecConfig
from moses_rnn.models.folders import MAX_SIZE, Expect, Kind, is_size, load_folder, save_folder
from moses_rnn.models.vocabulary import Vocabulary

SOURCE_VOCABULARY, TARGET_VOCABULARY = "source.vocab", "target.vocab"
SIZE_KEYS = ("hidden_size", "embedding_size", "maxout_size", "output_rank")
SWITCH_VALUES = {
    "summary": ("tanh", "last"),
    "first_step": ("zero-embedding", "initial-state"),
    "decoder_reset": ("after", "before"),
}


@dataclass(frozen=True)
class Checkpoint:
    """A network with its vocabularies.

    `direction` says which column of a table the network reads: "source-to-target" gives p(target | source),
    "target-to-source" p(source | target). `provenance` is what training wished to remember.
    """

    model: EncDec
    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary
    direction: str = "source-to-target"
    provenance: Mapping[str, Any] = field(default_factory=dict)
    hashes: Mapping[str, str] = field(default_factory=dict)  # of the files it was loaded from

    @property
    def held_out_nats(self) -> float | None:
        """The best held-out cost in nats per target token that training recorded."""
        history = self.provenance.get("history")
        steps = [step for step in history if isinstance(step, dict)] if isinstance(history, list) else []
        costs = [step["nats_per_token"] for step in steps if isinstance(step.get("nats_per_token"), int | float)]
        return min(costs, default=None)

    @property
    def unigram_nats(self) -> float | None:
        """What a unigram model of the training targets costs likewise, as training recorded it."""
        cost = self.provenance.get("unigram_nats_per_token")
        return cost if isinstance(cost, int | float) else None


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint folder, replacing the one there; see `save_folder`."""
    vocabularies = {SOURCE_VOCABULARY: checkpoint.source_vocabulary, TARGET_VOCABULARY: checkpoint.target_vocabulary}
    config = {**dataclasses.asdict(checkpoint.model.config), "direction": checkpoint.direction}
    save_folder(folder, checkpoint.model, vocabularies, config, checkpoint.provenance)


def load_checkpoint(folder: Path, device: torch.device | str = "cpu") -> Checkpoint:
    """Read and check a checkpoint folder.

    Raises:
        CheckpointError: anything is missing, damaged, not finite, of another format, or does not fit together.
    """
    loaded = load_folder(folder, ENCDEC, device)
    return Checkpoint(
        model=cast("EncDec", loaded.model),
        source_vocabulary=loaded.vocabularies[0],
        target_vocabulary=loaded.vocabularies[1],
        direction=loaded.config.get("direction", "source-to-target"),
        provenance=loaded.config.get("provenance", {}),
        hashes=loaded.hashes,
    )


def _network(config: Mapping[str, Any], words: list[int]) -> EncDec:
    choices = {key: config[key] for key in (*SIZE_KEYS, "variant", *SWITCH_VALUES)}
    return EncDec(EncDecConfig(source_vocabulary_size=words[0], target_vocabulary_size=words[1], **choices), seed=None)


def _check(config: dict[str, Any], expect: Expect) -> None:
    expect("network", "network" not in config, "none, as in an RNN Encoder-Decoder's config")
    for key in SIZE_KEYS:
        expect(key, is_size(config.get(key)), f"a whole number from 1 to {MAX_SIZE}")
    for key, values in SWITCH_VALUES.items():
        expect(key, config.get(key) in values, " or ".join(map(repr, values)))
    variant = config.get("variant")
    named = (
        isinstance(variant, str)
        and variant in SWITCHES
        and all(config[key] == value for key, value in SWITCHES[variant].items())
    )
    expect("variant", named or variant == "custom", "the name of its three switches (paper, groundhog, else custom)")
    direction = config.get("direction", "source-to-target")
    expect("direction", direction in ("source-to-target", "target-to-source"), "a known direction")


ENCDEC = Kind("network", (SOURCE_VOCABULARY, TARGET_VOCABULARY), _check, _network)
