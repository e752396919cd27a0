"""From a model folder to a score producer: config.json names the network, and a row here says what to make of it.

A further network is a file in `models`, one in `inference` and a row of NETWORKS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from moses_rnn.errors import CheckpointError
from moses_rnn.formats.phrase_forms import PhraseForm
from moses_rnn.inference.encdec import EncDecStepper
from moses_rnn.inference.steps import Stepper
from moses_rnn.models.checkpoint import Checkpoint, kind_of, load_checkpoint
from moses_rnn.models.cslm import CSLM
from moses_rnn.models.encdec import ENCDEC
from moses_rnn.models.folders import Kind
from moses_rnn.models.hardware import LARGE, Kernel, choose_compiled, choose_precision
from moses_rnn.producers.base import HERE, Compute, ScoreProducer
from moses_rnn.producers.cslm import CslmProducer
from moses_rnn.producers.phrases import StepperProducer


@dataclass(frozen=True)
class NetworkRow:
    """What to make of a network of a kind: a stepper, from which a producer follows, or else a producer."""

    kind: Kind
    name: str  # of its score
    title: str
    stepper: Callable[[Any, str, torch.dtype, Kernel], Stepper[Any, Any]] | None = None
    producer: Callable[[Checkpoint, Compute], ScoreProducer] | None = None


NETWORKS = {
    "encdec": NetworkRow(ENCDEC, "RNN", "RNN Encoder-Decoder", stepper=EncDecStepper),
    "cslm": NetworkRow(CSLM, "CSLM", "CSLM", producer=CslmProducer),
}


@dataclass(frozen=True)
class OpenModel:
    """A model folder, read and checked."""

    folder: Path
    checkpoint: Checkpoint

    @property
    def row(self) -> NetworkRow:
        """What its network is."""
        return NETWORKS[self.checkpoint.kind.network]

    @property
    def name(self) -> str:
        """Of its score."""
        return self.row.name + "Inverse" * self.checkpoint.inverse

    @property
    def form(self) -> PhraseForm:
        """The form of the phrases that it learned from."""
        return PhraseForm.from_record(self.checkpoint.form)

    @property
    def reads_sources(self) -> bool:
        """Whether it is a network of pairs, not of targets alone."""
        return "source" in self.checkpoint.kind.sides

    def choose_compute(self, device: str, precision: str, compiled: bool | None, *, long: bool) -> Compute:
        """Where and how to compute, for this network.

        Args:
            device: where.
            precision: one of PRECISIONS, or "auto": what suits.
            compiled: None: if that should pay.
            long: whether there is so much work that compiling could pay.

        Raises:
            MosesRnnError: torch is to compile, and cannot.
        """
        width = self.checkpoint.model.config.width
        chosen = choose_precision(precision, device, width)
        return Compute(device, chosen, choose_compiled(compiled, device, width, long=long, large=LARGE))

    def make_stepper(self, compute: Compute) -> Stepper[Any, Any]:
        """The network, arranged for scoring and search.

        Raises:
            CheckpointError: it does not write word by word.
        """
        if self.row.stepper is None:
            raise CheckpointError(f"{self.folder}: expected a network that writes, found a {self.row.title}")
        return self.row.stepper(self.checkpoint.model, compute.device, compute.dtype, compute.kernel)

    def make_producer(self, compute: Compute = HERE) -> ScoreProducer:
        """The producer of its score."""
        if self.row.producer is not None:
            return self.row.producer(self.checkpoint, compute)
        return StepperProducer(self.checkpoint, self.make_stepper(compute), self.name, self.row.title)


def model_files(folder: Path) -> list[str]:
    """The files that a model folder may have, of any kind."""
    return sorted({str(folder / name) for row in NETWORKS.values() for name in row.kind.files()})


def open_model(folder: Path | str, *, direction: str | None = None, of_pairs: bool = True) -> OpenModel:
    """Read and check a model folder.

    Args:
        folder: as moses-rnn-train and its like write it.
        direction: that it must have; None: any.
        of_pairs: whether it must be a network of pairs, not of targets alone.

    Raises:
        CheckpointError: it cannot be read, or is of another kind or direction.
    """
    folder = Path(folder)
    rows = [row for row in NETWORKS.values() if "source" in row.kind.sides or not of_pairs]
    kind = kind_of(folder, {row.kind.network: row.kind for row in rows})
    checkpoint = load_checkpoint(folder, kind)
    if direction not in (None, checkpoint.direction):
        raise CheckpointError(
            f"{folder}: expected a model of direction {direction}, found {checkpoint.direction}",
            advice="--model takes what moses-rnn-train makes, --inverse-model what moses-rnn-train --inverse makes.",
        )
    return OpenModel(folder, checkpoint)
