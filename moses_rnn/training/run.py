"""A whole training run: table to arrays to network to checkpoint folder."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch

from moses_rnn import __version__
from moses_rnn.errors import CheckpointError, OutputError, writing
from moses_rnn.formats.outputs import open_locked
from moses_rnn.models.checkpoint import MODEL_FILES, Checkpoint, finish_saving, save_checkpoint
from moses_rnn.models.encdec import SWITCHES, EncDec, EncDecConfig
from moses_rnn.training.config import PRESETS, TrainingConfig
from moses_rnn.training.corpus import Corpus, CorpusConfig, build_corpus
from moses_rnn.training.trainer import Observer, Progress, Trainer, epoch_batches

STATE_FOLDER = "training"  # inside the model folder; only needed to go on training
STATE_FILE = "state.safetensors"
LOG_FILE = "log.jsonl"
LOCK_FILE = "lock"
STATE_FILES = (
    STATE_FILE,
    LOG_FILE,
    *(f"{side}.{part}" for side in ("source", "target") for part in ("tokens", "lengths")),
)


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


class RunObserver(Observer, Protocol):
    """Who is told how a run goes."""

    def corpus_read(self, corpus: Corpus, unigram_nats: float) -> None:
        """Hear what the table holds and what a unigram model of its targets costs, in held-out nats per token."""

    def starting(self, model: EncDec, trainer: Trainer) -> None:
        """Hear that the first step is next."""


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


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
    state_folder = folder / STATE_FOLDER
    state_folder.mkdir(parents=True, exist_ok=True)
    lock = open_locked(state_folder / LOCK_FILE)
    if lock is None:
        raise OutputError(f"{folder}: is being trained by another run")
    with lock:
        try:
            return _train(pairs, folder, request, observer, should_stop, word_counts)
        except BaseException:
            if not (state_folder / STATE_FILE).exists() and not (folder / "config.json").exists():
                _remove_beginnings(folder)
            raise


def _remove_beginnings(folder: Path) -> None:
    """Leave nothing of a run that had nothing to save."""
    state_folder = folder / STATE_FOLDER
    for name in (*STATE_FILES, LOCK_FILE):
        (state_folder / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # somebody else has put something there
        state_folder.rmdir()
        folder.rmdir()


def remove_run(folder: Path) -> None:
    """Remove a model and its training state: the files that this package writes, and no others.

    Raises:
        OutputError: it is no model folder, or another run is training there.
    """
    state_folder = folder / STATE_FOLDER
    if not (state_folder / LOCK_FILE).exists() and not all((folder / name).exists() for name in MODEL_FILES):
        raise OutputError(f"{folder}: is no model folder; --restart does not remove it")
    if state_folder.is_dir():
        lock = open_locked(state_folder / LOCK_FILE)
        if lock is None:
            raise OutputError(f"{folder}: is being trained by another run")
        lock.close()
    for path in [state_folder / name for name in STATE_FILES] + [folder / name for name in MODEL_FILES]:
        path.unlink(missing_ok=True)


def _train(
    pairs: Iterable[tuple[bytes, bytes]],
    folder: Path,
    request: TrainingRequest,
    observer: RunObserver,
    should_stop: Callable[[], bool],
    word_counts: tuple[Mapping[bytes, int] | None, Mapping[bytes, int] | None],
) -> Progress:
    state_folder = folder / STATE_FOLDER
    finish_saving(folder)
    if (folder / "config.json").exists() and not (state_folder / STATE_FILE).exists():
        raise CheckpointError(
            f"{folder}: expected no model, or one with its training state, found a model alone\n"
            "  --restart replaces it; --model names another folder."
        )
    corpus = build_corpus(pairs, state_folder, request.corpus, word_counts)
    unigram = corpus.unigram_nats_per_token()
    observer.corpus_read(corpus, unigram)
    model = EncDec(network_config(request, corpus), seed=request.training.seed).to(request.device)
    trainer = Trainer(model, corpus, request.training, state_folder / STATE_FILE)
    observer.starting(model, trainer)
    record = _Record(folder, request, corpus, unigram, observer)
    return trainer.run(record.bound_to(trainer), should_stop)


def network_config(request: TrainingRequest, corpus: Corpus) -> EncDecConfig:
    """Sizes and switches of the network, with the vocabularies' sizes."""
    return EncDecConfig(
        source_vocabulary_size=len(corpus.source_vocabulary),
        target_vocabulary_size=len(corpus.target_vocabulary),
        **request.network,
    )


class _Record:
    """Keeps the best weights and the log, then passes the news on."""

    def __init__(
        self, folder: Path, request: TrainingRequest, corpus: Corpus, unigram: float, observer: RunObserver
    ) -> None:
        self._folder = folder
        self._corpus = corpus
        self._direction = request.direction
        self._observer = observer
        self.stepped = observer.stepped
        self._provenance: dict[str, Any] = {
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

    def bound_to(self, trainer: Trainer) -> _Record:
        self._trainer = trainer
        return self

    def evaluated(self, progress: Progress, is_best: bool) -> None:
        if is_best:
            self._save(progress)
        path = self._folder / STATE_FOLDER / LOG_FILE
        with writing(path), open(path, "a", encoding="utf-8", opener=_no_link) as log:
            log.write(json.dumps({**progress.history[-1], "best": is_best}) + "\n")
        self._trainer.save()
        self._observer.evaluated(progress, is_best)

    def _save(self, progress: Progress) -> None:
        provenance = {**self._provenance, "history": progress.history, "skipped_steps": progress.skipped_steps}
        save_checkpoint(
            self._folder,
            Checkpoint(
                model=self._trainer.model,
                source_vocabulary=self._corpus.source_vocabulary,
                target_vocabulary=self._corpus.target_vocabulary,
                direction=self._direction,
                provenance=provenance,
            ),
        )


def pairs_per_second_of_preset(name: str, corpus: Corpus, device: str, steps: int = 3) -> float | None:
    """How fast a preset would train here, measured on a few of its own steps; None if the corpus is too small."""
    preset = PRESETS[name]
    sizes = (preset.hidden_size, preset.embedding_size, preset.maxout_size, preset.output_rank)
    known = (corpus.source_vocabulary, corpus.target_vocabulary)
    vocabularies = [max(preset.shortlist + 2, len(vocabulary)) for vocabulary in known]
    with torch.device(device):
        model = EncDec(EncDecConfig(vocabularies[0], vocabularies[1], *sizes), seed=None)
    for tensor in model.parameters():
        torch.nn.init.normal_(tensor, std=0.01)
    trainer = Trainer(model, corpus, preset.training, Path("/nonexistent"))
    batches = epoch_batches(corpus, preset.training, epoch=0)
    started, pairs = 0.0, 0
    for step, rows in zip(range(steps + 1), batches, strict=False):
        if step == 1:  # the first one warms up
            started, pairs = time.monotonic(), 0
        trainer.learn(rows)
        pairs += len(rows)
    return pairs / (time.monotonic() - started) if pairs and started else None
