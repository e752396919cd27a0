"""A whole training run: table to arrays to network to checkpoint folder."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch

from moses_rnn import __version__
from moses_rnn.models.checkpoint import Checkpoint, save_checkpoint
from moses_rnn.models.encdec import ENCDEC, SWITCHES, EncDec, EncDecConfig
from moses_rnn.training.config import TrainingConfig
from moses_rnn.training.corpus import Corpus, CorpusConfig, build_corpus
from moses_rnn.training.estimate import Estimate, estimate
from moses_rnn.training.model_folder import FolderObserver, Prepared, train_in
from moses_rnn.training.pairs import PhrasePairs
from moses_rnn.training.trainer import Progress


@dataclass(frozen=True)
class TrainingRequest:
    """All choices of a run. `network` has the sizes and switches of EncDecConfig but for the vocabulary sizes."""

    network: Mapping[str, Any]
    corpus: CorpusConfig
    training: TrainingConfig
    direction: str = "source-to-target"
    device: str = "cpu"
    table: str = ""  # its name, for the record
    phrases: Mapping[str, Any] = field(default_factory=dict)  # their form, for the record


class RunObserver(FolderObserver, Protocol):
    """Who is told how a run goes."""

    def corpus_read(self, corpus: Corpus, unigram_nats: float) -> None:
        """Hear what the table holds and what a unigram model of its targets costs, in held-out nats per token."""


def variant_of(switches: Mapping[str, str]) -> str:
    """The name of three switches: paper, groundhog, or custom."""
    return next((name for name, values in SWITCHES.items() if values == dict(switches)), "custom")


def train(
    pairs: Iterable[tuple[bytes, bytes]],
    folder: Path,
    request: TrainingRequest,
    observer: RunObserver,
    should_stop: Callable[[], bool],
    word_counts: tuple[Mapping[bytes, int] | None, Mapping[bytes, int] | None] = (None, None),
) -> Progress:
    """Train a network on phrase pairs, or go on with a run that was stopped.

    Args:
        pairs: source and target phrases as the network shall read them.
        folder: the checkpoint folder; after every evaluation it holds the best weights so far.
        request: all choices.
        observer: hears of everything.
        should_stop: asked after every step.
        word_counts: see `build_corpus`.

    Returns:
        Where the run stands; ``finished`` is empty when it was stopped.

    Raises:
        CheckpointError: the folder holds a run with other choices, or a model without its run.
        OutputError: another run is training there.
        MosesRnnError: the training diverged.
    """

    def prepare(arrays: Path) -> Prepared:
        corpus = build_corpus(pairs, arrays, request.corpus, word_counts)
        unigram = corpus.unigram_nats_per_token()
        observer.corpus_read(corpus, unigram)
        task = PhrasePairs(_network(request, corpus), corpus, request.training)
        known = provenance(request, corpus, unigram)
        return Prepared(task, lambda news: _save(folder, task, request, {**known, **news}))

    choices = {**request.network, **request.training.course()}
    return train_in(folder, ENCDEC, prepare, request.training, choices, observer, should_stop)


def estimate_run(
    pairs: Iterable[tuple[bytes, bytes]],
    request: TrainingRequest,
    observer: RunObserver,
    word_counts: tuple[Mapping[bytes, int] | None, Mapping[bytes, int] | None] = (None, None),
) -> Estimate:
    """Read the table, learn for some seconds and forget it. Arguments as of `train`."""
    with tempfile.TemporaryDirectory(prefix="moses-rnn") as arrays:
        corpus = build_corpus(pairs, Path(arrays), request.corpus, word_counts)
        observer.corpus_read(corpus, corpus.unigram_nats_per_token())
        return estimate(corpus, _network(request, corpus), request.training)


def _network(request: TrainingRequest, corpus: Corpus) -> EncDec:
    """With its initial weights."""
    model = EncDec(network_config(request, corpus), seed=None)
    model.initialise(request.training.seed, request.training.initial_deviation)
    return model.to(request.device)


def network_config(request: TrainingRequest, corpus: Corpus) -> EncDecConfig:
    """Sizes and switches of the network, with the vocabularies' sizes."""
    return EncDecConfig(
        source_vocabulary_size=len(corpus.source_vocabulary),
        target_vocabulary_size=len(corpus.target_vocabulary),
        **request.network,
    )


def provenance(request: TrainingRequest, corpus: Corpus, unigram: float) -> dict[str, Any]:
    """What a checkpoint remembers of its run."""
    return {
        "version": __version__,
        "torch": torch.__version__,
        "table": request.table,
        "phrases": dict(request.phrases),
        "device": request.device,
        "corpus_options": asdict(request.corpus),
        "training_options": asdict(request.training),
        "corpus": asdict(corpus.statistics),
        "unigram_nats_per_token": unigram,
    }


def _save(folder: Path, task: PhrasePairs, request: TrainingRequest, remembered: Mapping[str, Any]) -> None:
    vocabularies = {"source": task.corpus.source_vocabulary, "target": task.corpus.target_vocabulary}
    checkpoint = Checkpoint(ENCDEC, task.model, vocabularies, direction=request.direction, provenance=remembered)
    save_checkpoint(folder, checkpoint)
