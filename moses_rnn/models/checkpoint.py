"""A trained network of any kind, and the folder that holds it."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from moses_rnn.errors import CheckpointError, shown_value
from moses_rnn.models.encdec import ENCDEC
from moses_rnn.models.folders import (
    CONFIG,
    FORMAT,
    PHRASES,
    SOURCE_TO_TARGET,
    TARGET_TO_SOURCE,
    Kind,
    load_folder,
    read_key,
    read_network,
    save_folder,
    vocabulary_file,
)
from moses_rnn.models.learning_curves import NATS
from moses_rnn.models.vocabulary import Vocabulary


@dataclass(frozen=True)
class Checkpoint:
    """A network of any kind with its vocabularies.

    `vocabularies` are by side: "source" is what the network reads, "target" what it writes. `direction` says which of
    them is a table's source: "source-to-target" gives p(target | source), "target-to-source" p(source | target).
    `provenance` is what training wished to remember.
    """

    kind: Kind
    model: Any  # the kind's module
    vocabularies: Mapping[str, Vocabulary]
    direction: str = SOURCE_TO_TARGET
    provenance: Mapping[str, Any] = field(default_factory=dict)
    hashes: Mapping[str, str] = field(default_factory=dict)  # of the files it was loaded from

    @property
    def source_vocabulary(self) -> Vocabulary:
        """Words that the network reads."""
        return self.vocabularies["source"]

    @property
    def target_vocabulary(self) -> Vocabulary:
        """Words that the network writes."""
        return self.vocabularies["target"]

    @property
    def inverse(self) -> bool:
        """Whether the network reads target phrases and writes source phrases."""
        return self.direction == TARGET_TO_SOURCE

    @property
    def unit(self) -> str:
        """What the network learned from: SENTENCES or PHRASES."""
        unit: str = self.provenance.get("unit", PHRASES) if self.kind.format == FORMAT else self.model.config.unit
        return unit

    @property
    def rare(self) -> Mapping[str, Any] | None:
        """How it learned rare words, as config.json has it; None: they are <unk>."""
        rare: Mapping[str, Any] | None = getattr(self.model.config, "rare", None)
        return rare

    @property
    def form(self) -> Any:
        """The form of the phrases that it learned from, as training recorded it; None: plain words."""
        return self.provenance.get("phrases")

    @property
    def held_out_nats(self) -> float | None:
        """The best held-out cost in nats per target token that training recorded."""
        return self.held_out_cost if self.kind.measure is NATS else None

    @property
    def held_out_cost(self) -> float | None:
        """The best held-out cost that training recorded, by the measure of the network's kind."""
        key, history = self.kind.measure.key, self.provenance.get("history")
        steps = [step for step in history if isinstance(step, dict)] if isinstance(history, list) else []
        costs = [step[key] for step in steps if isinstance(step.get(key), int | float)]
        return min(costs, default=None)

    @property
    def rival_cost(self) -> float | None:
        """What a network costs likewise that has learned nothing."""
        known = self.kind.measure.rival_cost
        return self.unigram_nats if known is None else known

    @property
    def unigram_nats(self) -> float | None:
        """What a unigram model of the training targets costs likewise, as training recorded it."""
        cost = self.provenance.get("unigram_nats_per_token")
        return cost if isinstance(cost, int | float) else None


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint folder, replacing the one there; see `save_folder`."""
    kind = checkpoint.kind
    config = {**kind.named, **dataclasses.asdict(checkpoint.model.config)}
    if "source" in kind.sides or kind.format > FORMAT:
        config["direction"] = checkpoint.direction
    files = {vocabulary_file(side): checkpoint.vocabularies[side] for side in kind.sides}
    save_folder(folder, checkpoint.model, files, config, checkpoint.provenance)


def load_checkpoint(folder: Path | str, kind: Kind = ENCDEC, device: torch.device | str = "cpu") -> Checkpoint:
    """Read and check a checkpoint folder of a kind.

    Raises:
        CheckpointError: anything is missing, damaged, not finite, of another kind or format, or does not fit together.
    """
    loaded = load_folder(Path(folder), kind, device)
    return Checkpoint(
        kind=kind,
        model=loaded.model,
        vocabularies=dict(zip(kind.sides, loaded.vocabularies, strict=True)),
        direction=loaded.config.get("direction", SOURCE_TO_TARGET),
        provenance=loaded.config.get("provenance", {}),
        hashes=loaded.hashes,
    )


def kind_of(folder: Path, kinds: Collection[Kind], all_kinds: Collection[Kind] = ()) -> Kind:
    """Of some kinds the one that a checkpoint folder is of.

    Args:
        folder: its config.json names the network, or none for an RNN Encoder-Decoder.
        kinds: of which several may have a network's name, in different formats.
        all_kinds: what a folder may be of, for the message if it is of another one.

    Raises:
        CheckpointError: there is no config.json to be read, or it names another network.
    """
    network = read_network(folder)
    named = {kind.format: kind for kind in kinds if kind.network == network}
    for other in all_kinds:
        if other.network == network and not named:
            pairs = all("source" in kind.sides for kind in kinds)
            expected = "a network of sources and targets" if pairs else "a language model"
            raise CheckpointError(f"{folder}: expected {expected}, found: {other.title}", advice=other.taken_by)
    if not named:
        known = " or ".join(sorted({kind.network for kind in kinds}))
        raise CheckpointError(f"{folder / CONFIG}: expected network to be {known}, found {shown_value(network)}")
    number = read_key(folder, "format") if len(named) > 1 else None
    return named[number] if type(number) is int and number in named else named[min(named)]
