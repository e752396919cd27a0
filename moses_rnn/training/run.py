"""A whole training run: table to arrays to network to checkpoint folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import torch

from moses_rnn import __version__
from moses_rnn.models.checkpoint import ENCDEC, Checkpoint, save_checkpoint
from moses_rnn.models.encdec import SWITCHES, EncDec, EncDecConfig
from moses_rnn.training.config import PRESETS, TrainingConfig
from moses_rnn.training.corpus import Corpus, CorpusConfig, build_corpus
from moses_rnn.training.model_folder import FolderObserver, Prepared, train_in
from moses_rnn.training.pairs import PhrasePairs
from moses_rnn.training.trainer import Progress, Trainer


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
        model = EncDec(network_config(request, corpus), seed=None)
        model.initialise(request.training.seed, request.training.initial_deviation)
        task = PhrasePairs(model.to(request.device), corpus, request.training)
        known = provenance(request, corpus, unigram)
        return Prepared(task, lambda news: _save(folder, task, request, {**known, **news}))

    return train_in(folder, ENCDEC, prepare, request.training, observer, should_stop)


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
    known = task.corpus.source_vocabulary, task.corpus.target_vocabulary
    save_checkpoint(folder, Checkpoint(task.model, *known, direction=request.direction, provenance=remembered))


def pairs_per_second_of_preset(name: str, corpus: Corpus, device: str, threads: int, steps: int = 3) -> float | None:
    """How fast a preset would train here, measured on a few of its own steps; None if the corpus is too small."""
    preset = PRESETS[name]
    sizes = (preset.hidden_size, preset.embedding_size, preset.maxout_size, preset.output_rank)
    known = (corpus.source_vocabulary, corpus.target_vocabulary)
    vocabularies = [max(preset.shortlist + 2, len(vocabulary)) for vocabulary in known]
    with torch.device(device):
        model = EncDec(EncDecConfig(vocabularies[0], vocabularies[1], *sizes), seed=None)
    for tensor in model.parameters():
        torch.nn.init.normal_(tensor, std=0.01)
    task = PhrasePairs(model, corpus, preset.training)
    trainer = Trainer(task, replace(preset.training, threads=threads), Path("/nonexistent"))
    started, pairs = 0.0, 0
    for step, rows in zip(range(steps + 1), task.batches(0, 0), strict=False):
        if step == 1:  # the first one warms up
            started, pairs = time.monotonic(), 0
        trainer.learn(rows)
        pairs += len(rows)
    return pairs / (time.monotonic() - started) if pairs and started else None
