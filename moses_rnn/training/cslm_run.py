"""A whole training run of a CSLM: text to ids to network to checkpoint folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import torch

from moses_rnn import __version__
from moses_rnn.errors import InputError
from moses_rnn.formats.phrase_forms import words
from moses_rnn.models.checkpoint import Checkpoint, save_checkpoint
from moses_rnn.models.cslm import CSLM, Cslm, CslmConfig
from moses_rnn.models.vocabulary import Vocabulary, coverage, shortlist
from moses_rnn.training.config import NGramConfig, TrainingConfig
from moses_rnn.training.model_folder import FolderObserver, Prepared, train_in
from moses_rnn.training.n_grams import NGrams, TextConfig, build_texts, chosen_lines
from moses_rnn.training.trainer import Progress

NOT_WORDS = (b"<s>", b"<null>")  # of NPLM and KenLM; such a word of a text is an unknown one
Lines = Callable[[], Iterable[bytes]]  # a text, which is read more than once


@dataclass(frozen=True)
class CslmRequest:
    """All choices of a run. `network` has the sizes of CslmConfig but for the vocabulary's."""

    network: Mapping[str, int]
    text: TextConfig
    learning: NGramConfig
    training: TrainingConfig
    device: str = "cpu"
    names: tuple[str, ...] = ()  # of the texts, for the record


@dataclass(frozen=True)
class TextStatistics:
    """What a reader of a training log wants to know about a text."""

    lines: int
    words: int  # running, without end symbols
    distinct_words: int
    coverage: float  # share of the running words that the shortlist knows
    held_out_lines: int  # chosen from the text; 0 if another text is held out


class CslmObserver(FolderObserver, Protocol):
    """Who is told how a run goes."""

    def text_read(self, statistics: TextStatistics, vocabulary: Vocabulary) -> None:
        """Hear what the text holds."""


def train_cslm(
    text: Lines,
    held_out: Lines | None,
    folder: Path,
    request: CslmRequest,
    observer: CslmObserver,
    should_stop: Callable[[], bool],
) -> Progress:
    """Train a CSLM on a tokenised text, or go on with a run that was stopped.

    Args:
        text: gives the lines, from the beginning each time it is called; they are read twice.
        held_out: the same for a text to judge by; None takes lines of the first one.
        folder: the checkpoint folder; after every evaluation it holds the best weights so far.
        request: all choices.
        observer: hears of everything.
        should_stop: asked after every step.

    Returns:
        Where the run stands; ``finished`` is empty when it was stopped.

    Raises:
        InputError: a text has no words.
        CheckpointError, OutputError, MosesRnnError: see `train_in`.
    """

    def prepare(arrays: Path) -> Prepared:
        counts, lines = _counted(text())
        for special in NOT_WORDS:
            counts.pop(special, None)
        if not counts:
            raise InputError(f"expected a text to train on, found no word in {lines} lines")
        vocabulary = shortlist(counts, request.text.shortlist)
        config = CslmConfig(len(vocabulary), **request.network)
        chosen = None if held_out else chosen_lines(lines, request.text)
        texts = build_texts(text(), held_out and held_out(), arrays, vocabulary, config.order, chosen)
        known = coverage(counts, vocabulary)
        aside = 0 if chosen is None else int(chosen.sum())
        statistics = TextStatistics(lines, sum(counts.values()), len(counts), known, aside)
        observer.text_read(statistics, vocabulary)
        model = Cslm(config, seed=request.training.seed).to(request.device)
        remembered = _provenance(request, statistics)
        return Prepared(
            NGrams(model, *texts, request.training, request.learning),
            lambda news: save_checkpoint(
                folder, Checkpoint(CSLM, model, {"target": vocabulary}, provenance={**remembered, **news})
            ),
        )

    choices = {**request.network, **asdict(request.learning), **request.training.course()}
    return train_in(folder, CSLM, prepare, request.training, choices, observer, should_stop)


def _counted(lines: Iterable[bytes]) -> tuple[Counter[bytes], int]:
    counts: Counter[bytes] = Counter()
    number = 0
    for number, line in enumerate(lines, start=1):  # noqa: B007, the last one is the count
        counts.update(words(line.rstrip(b"\r\n")))
    return counts, number


def _provenance(request: CslmRequest, statistics: TextStatistics) -> dict[str, Any]:
    return {
        "version": __version__,
        "torch": torch.__version__,
        "texts": list(request.names),
        "device": request.device,
        "text_options": asdict(request.text),
        "learning": asdict(request.learning),
        "training_options": asdict(request.training),
        "text": asdict(statistics),
    }
