"""From a model folder to a score producer: config.json names the network, and a row here says what to make of it.

A further network is a file in `models`, one in `inference` and a row of NETWORKS.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from moses_rnn.errors import CheckpointError, MosesRnnError
from moses_rnn.formats.phrase_forms import PhraseForm
from moses_rnn.formats.phrase_table import DEFAULT_FLOOR as LONG_FLOOR
from moses_rnn.formats.rare_words import NOALIGN, RareWords
from moses_rnn.inference.cells import cell_stepper
from moses_rnn.inference.cstm import CstmPairs
from moses_rnn.inference.encdec import EncDecStepper
from moses_rnn.inference.native import NativeEncDec
from moses_rnn.inference.ranker import RankerPairs
from moses_rnn.inference.rnnsearch import RnnSearchStepper
from moses_rnn.inference.seq2seq import Seq2SeqStepper
from moses_rnn.inference.steps import Stepper
from moses_rnn.inference.trie_scoring import PairNetwork, SteppedPairs
from moses_rnn.models.bengio import BENGIO
from moses_rnn.models.cells import ENCDEC_OF_CELLS
from moses_rnn.models.checkpoint import Checkpoint, kind_of, load_checkpoint
from moses_rnn.models.cslm import CSLM
from moses_rnn.models.cstm import CSTM
from moses_rnn.models.encdec import ENCDEC
from moses_rnn.models.folders import SENTENCES, Kind, read_key
from moses_rnn.models.hardware import choose_precision
from moses_rnn.models.ranker import RANKER
from moses_rnn.models.rnnlm import RNNLM
from moses_rnn.models.rnnsearch import RNNSEARCH
from moses_rnn.models.seq2seq import SEQ2SEQ
from moses_rnn.models.vocabulary import Vocabulary
from moses_rnn.native import NativeCore, native_core
from moses_rnn.producers.annotated import AnnotatedProducer, annotated_meaning
from moses_rnn.producers.base import HERE, Compute, Description, ScoreProducer, Wanted
from moses_rnn.producers.cslm import CslmProducer, NplmProducer
from moses_rnn.producers.language_models import NetworkLanguageModel, Shares
from moses_rnn.producers.phrases import BOTH_ENDS, PhraseProducer, meaning_of
from moses_rnn.producers.rnnlm import RnnlmProducer


@dataclass(frozen=True)
class NetworkRow:
    """What to make of a network of a kind: a stepper, from which a producer follows, or else a language model.

    `native` makes the network that the native core computes; `pairs` makes what scores pairs where there is no stepper.
    """

    kind: Kind
    name: str  # of its score
    title: str
    stepper: Callable[[Any, str, torch.dtype], Stepper[Any, Any]] | None = None
    language_model: Callable[[Checkpoint, Compute, Shares | None], NetworkLanguageModel] | None = None
    native: Callable[[Any, NativeCore, str], PairNetwork] | None = None
    pairs: Callable[[Any, str, torch.dtype, float | None], PairNetwork] | None = None
    ends: str = BOTH_ENDS  # which end symbols count in a score of pairs
    unbounded: bool = False  # whether that is no log-probability


NETWORKS = {
    "encdec": NetworkRow(ENCDEC, "RNN", "RNN Encoder-Decoder", stepper=EncDecStepper, native=NativeEncDec),
    "encdec of other cells": NetworkRow(ENCDEC_OF_CELLS, "RNN", "RNN Encoder-Decoder", stepper=cell_stepper),
    "rnnsearch": NetworkRow(RNNSEARCH, "SEARCH", "RNNsearch", stepper=RnnSearchStepper),
    "seq2seq": NetworkRow(SEQ2SEQ, "LSTM", "deep LSTM", stepper=Seq2SeqStepper),
    "cstm": NetworkRow(CSTM, "CSTM", "CSTM", pairs=CstmPairs, ends="its </s> included where it has a slot"),
    "ranker": NetworkRow(RANKER, "RANK", "ranker", pairs=RankerPairs, ends="without </s>", unbounded=True),
    "cslm": NetworkRow(CSLM, "CSLM", "CSLM", language_model=CslmProducer),
    "bengio": NetworkRow(BENGIO, "NPLM", "NPLM of Bengio et al.", language_model=NplmProducer),
    "rnnlm": NetworkRow(RNNLM, "RNNLM", "RNNLM", language_model=RnnlmProducer),
}
KINDS = [row.kind for row in NETWORKS.values()]


@dataclass(frozen=True)
class OpenModel:
    """A model folder, read and checked."""

    folder: Path
    checkpoint: Checkpoint

    @property
    def row(self) -> NetworkRow:
        """What its network is."""
        return next(row for row in NETWORKS.values() if row.kind is self.checkpoint.kind)

    @property
    def name(self) -> str:
        """Of its score."""
        return self.row.name + "Inverse" * self.checkpoint.inverse

    @property
    def models(self) -> Sequence[OpenModel]:
        """Itself alone, where an ensemble has several."""
        return (self,)

    @property
    def source_vocabulary(self) -> Vocabulary:
        """Words that it reads."""
        return self.checkpoint.source_vocabulary

    @property
    def target_vocabulary(self) -> Vocabulary:
        """Words that it writes."""
        return self.checkpoint.target_vocabulary

    @property
    def network_title(self) -> str:
        """The network's, with its cells if they are not those of its paper."""
        cell = getattr(self.checkpoint.model.config, "cell", None)
        return f"{self.row.title} of {cell} cells" if cell else self.row.title

    @property
    def title(self) -> str:
        """The network's, for the meaning of its score."""
        return self.network_title + " of sentences" * self.learned_sentences

    @property
    def learned_sentences(self) -> bool:
        """Whether it learned from sentences, not from phrases."""
        return self.checkpoint.unit == SENTENCES

    @property
    def form(self) -> PhraseForm:
        """The form of the phrases that it learned from."""
        return PhraseForm.from_record(self.checkpoint.form)

    @property
    def inverse(self) -> bool:
        """Whether it reads targets and writes sources."""
        return self.checkpoint.inverse

    @property
    def rare(self) -> RareWords | None:
        """How it learned rare words; None: they are <unk>."""
        record = self.checkpoint.rare
        return None if record is None else RareWords.from_record(record)

    @property
    def unbounded(self) -> bool:
        """Whether its score is no log-probability, and so may be above 0."""
        return self.row.unbounded

    @property
    def reads_sources(self) -> bool:
        """Whether it is a network of pairs, not of targets alone."""
        return "source" in self.checkpoint.kind.sides

    def choose_compute(self, wanted: Wanted) -> Compute:
        """Where and how to compute, for this network: by the native core where it can.

        Args:
            wanted: by the user.
        """
        width = self.checkpoint.model.config.width
        precision = choose_precision(wanted.precision or "fp32", wanted.device, width)
        if self.core_for(wanted, precision):
            return Compute(wanted.device, precision, native=True)
        return Compute(wanted.device, precision, floors_long=wanted.floors_long)

    def core_for(self, wanted: Wanted, precision: str) -> NativeCore | None:
        """The native core, if it has this network and the precision."""
        core = native_core() if wanted.device == "cpu" and self.row.native is not None else None
        return core if core is not None and core.multiplies(precision) else None

    def make_stepper(self, compute: Compute) -> Stepper[Any, Any]:
        """The network, arranged for scoring and search.

        Raises:
            CheckpointError: it does not write word by word.
        """
        if self.row.stepper is None:
            raise CheckpointError(f"{self.folder}: expected a network that writes, found: {self.network_title}")
        return self.row.stepper(self.checkpoint.model, compute.device, compute.dtype)

    def make_producer(self, compute: Compute = HERE) -> ScoreProducer:
        """The producer of its score."""
        if self.row.language_model is not None:
            return self.make_language_model(compute)
        network = self._pair_network(compute)
        producer = PhraseProducer(self.checkpoint, network, self.name, self._meaning, self.unbounded)
        return AnnotatedProducer(producer, self, self.rare) if self.rare else producer

    def describe(self) -> Description:
        """Its score; a network of pairs is not arranged for that."""
        if self.row.language_model is not None:
            producer = self.make_producer()
            return Description(producer.name, producer.meaning)
        meaning = annotated_meaning(self._meaning, self.rare) if self.rare else self._meaning
        return Description(self.name, meaning, self.unbounded)

    @property
    def _meaning(self) -> str:
        """What the score of a network of pairs is, its rare words aside."""
        return meaning_of(self.title, inverse=self.inverse, ends=self.row.ends, unbounded=self.unbounded)

    def make_language_model(self, compute: Compute = HERE, shares: Shares | None = None) -> NetworkLanguageModel:
        """The producer of the score of a network of targets alone.

        Args:
            compute: where and how.
            shares: of words outside the shortlist in the probability of ``<unk>``.

        Raises:
            CheckpointError: it reads sources.
        """
        if self.row.language_model is None:
            raise CheckpointError(f"{self.folder}: expected a language model, found: {self.network_title}")
        return self.row.language_model(self.checkpoint, compute, shares)

    def _pair_network(self, compute: Compute) -> PairNetwork:
        if self.row.pairs is not None:
            how = compute.device, compute.dtype
            return self.row.pairs(self.checkpoint.model, *how, LONG_FLOOR if compute.floors_long else None)
        if not compute.native:
            return SteppedPairs(self.make_stepper(compute))
        core = native_core()
        if core is None or self.row.native is None:
            raise MosesRnnError(f"{self.folder}: expected the native core to compute it, found {core or 'none'}")
        return self.row.native(self.checkpoint.model, core, compute.precision)


def model_files(folder: Path) -> list[str]:
    """The files that a model folder may have, of any kind."""
    return sorted({str(folder / name) for row in NETWORKS.values() for name in row.kind.files()})


def needs_alignments(folder: Path) -> bool:
    """Whether a model annotates what it scores by word alignments; its weights are not read.

    Raises:
        CheckpointError: its config cannot be read.
    """
    record = read_key(folder, "rare")
    return isinstance(record, dict) and record.get("kind") != NOALIGN


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
    kinds = [row.kind for row in NETWORKS.values() if "source" in row.kind.sides or not of_pairs]
    checkpoint = load_checkpoint(folder, kind_of(folder, kinds, KINDS))
    if direction not in (None, checkpoint.direction):
        raise CheckpointError(
            f"{folder}: expected a model of direction {direction}, found {checkpoint.direction}",
            advice="--model takes what moses-rnn-train makes, --inverse-model what moses-rnn-train --inverse makes.",
        )
    try:
        RareWords.from_record(checkpoint.rare)
    except ValueError as error:
        raise CheckpointError(f"{folder}: rare: {error}") from error
    return OpenModel(folder, checkpoint)


def open_language_model(folder: Path | str) -> OpenModel:
    """Read and check the folder of a network of targets alone.

    Raises:
        CheckpointError: it cannot be read, or is of a network of pairs.
    """
    kinds = [row.kind for row in NETWORKS.values() if row.language_model]
    return OpenModel(Path(folder), load_checkpoint(folder, kind_of(Path(folder), kinds, KINDS)))


@dataclass(frozen=True)
class ModelOnDisk:
    """A model that was opened and checked: its folder, its direction, the hashes of its files."""

    folder: Path
    direction: str
    hashes: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, model: OpenModel) -> ModelOnDisk:
        """Where an open model comes from."""
        return cls(model.folder.resolve(), model.checkpoint.direction, tuple(sorted(model.checkpoint.hashes.items())))

    def open_again(self) -> OpenModel:
        """Open it in another process.

        Raises:
            CheckpointError: it is not there, or another one is.
        """
        model = open_model(self.folder, direction=self.direction)
        if tuple(sorted(model.checkpoint.hashes.items())) != self.hashes:
            raise CheckpointError(f"{self.folder}: was changed after this run began")
        return model
