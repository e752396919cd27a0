"""Training a CSLM: text to ids to network to model folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from moses_rnn import __version__
from moses_rnn.errors import InputError
from moses_rnn.files.streams import STANDARD_STREAM, existing_input
from moses_rnn.formats.phrase_forms import words
from moses_rnn.models.checkpoint import Checkpoint
from moses_rnn.models.cslm import CSLM, Cslm, CslmConfig
from moses_rnn.models.hardware import choose_precision
from moses_rnn.models.vocabulary import Vocabulary, coverage, shortlist
from moses_rnn.training.config import CSLM_PRESETS, CslmRequest, NGramConfig, TrainingConfig
from moses_rnn.training.corpus_files import (
    Filing,
    load_record,
    load_vocabulary,
    made_by_first,
    map_ids,
    save_record,
    save_vocabulary,
)
from moses_rnn.training.model_folder import folder_of
from moses_rnn.training.n_grams import NGrams, Text, TextConfig, build_texts, chosen_lines
from moses_rnn.training.ranks import ALONE, Ranks
from moses_rnn.training.run import Outcome, preset_name, read_watched, rows_at_once, threads_for
from moses_rnn.training.trainer import Observer, Trainer

NOT_WORDS = (b"<s>", b"<null>")  # of NPLM and KenLM; such a word of a text is an unknown one
SIZES = ("order", "embedding_size", "first_size", "second_size")
Lines = Callable[[], Iterable[bytes]]  # a text, from the beginning each time it is called


@dataclass(frozen=True)
class CslmPlan:
    """A preset with what the request overrides."""

    network: dict[str, int]  # sizes of CslmConfig, without the vocabulary's
    text: TextConfig
    learning: NGramConfig
    training: TrainingConfig


@dataclass(frozen=True)
class TextStatistics:
    """What a reader of a training log wants to know about a text."""

    lines: int
    words: int  # running, without end symbols
    distinct_words: int
    coverage: float  # share of the running words that the shortlist knows
    held_out_lines: int  # chosen from the text; 0 if another text is held out


def train_cslm(
    request: CslmRequest, observer: Observer, should_stop: Callable[[], bool], ranks: Ranks = ALONE
) -> Outcome:
    """Train a CSLM on tokenised texts taken as one, or continue a run that was stopped.

    Args:
        request: texts, model folder and choices; the texts are read twice. After every evaluation the folder holds
            the best weights so far.
        observer: follows the run.
        should_stop: called after every block of text and every step.
        ranks: the processes that train it together; all call this function with equal arguments.

    Raises:
        InputError: a text is not there, or has no words.
        CheckpointError, OutputError, MosesRnnError, PeerFailed, Stopped: see `train_phrase_model`.
    """
    text = _lines(request.texts, observer, should_stop)
    dev = _lines((request.dev,), observer, should_stop) if request.dev else None
    plan = _plan_of(request, ranks.size)
    with folder_of(ranks, request.model, CSLM, restart=request.restart) as kept:
        kept.check_choices({**plan.network, **asdict(plan.learning), **plan.training.course()})
        vocabulary, statistics, texts = made_by_first(
            ranks, kept.arrays, TEXTS, lambda: _read(text, dev, plan, kept.arrays), should_stop
        )
        observer.corpus_read(_describe_text(statistics, vocabulary))
        model = Cslm(CslmConfig(len(vocabulary), **plan.network), seed=plan.training.seed).to(request.device)
        kept.checkpoint = Checkpoint(
            CSLM, model, {"target": vocabulary}, provenance=_provenance(request, plan, statistics)
        )
        task = NGrams(model, *texts, plan.training, plan.learning)
        return Outcome(Trainer(task, plan.training, ranks).run(kept, observer, should_stop))


class Read(NamedTuple):
    """What is made of a text."""

    vocabulary: Vocabulary
    statistics: TextStatistics
    texts: tuple[Text, Text]  # what is learned, and what is held out


def _read(text: Lines, dev: Lines | None, plan: CslmPlan, arrays: Path) -> Read:
    """The shortlist, and the ids of what is learned and of what is held out."""
    counts, lines = _counted(text())
    vocabulary = shortlist(counts, plan.text.shortlist)
    chosen = None if dev else chosen_lines(lines, plan.text)
    texts = build_texts(text(), dev and dev(), arrays, vocabulary, plan.network["order"], chosen)
    aside = 0 if chosen is None else int(chosen.sum())
    known = coverage(counts, vocabulary)
    return Read(vocabulary, TextStatistics(lines, sum(counts.values()), len(counts), known, aside), texts)


def _save_read(read: Read, folder: Path) -> None:
    save_record(folder, asdict(read.statistics))
    save_vocabulary(folder, "target", read.vocabulary)


def _load_read(folder: Path) -> Read:
    vocabulary = load_vocabulary(folder, "target")
    learned, held_out = (Text(map_ids(folder / f"{name}.tokens"), len(vocabulary)) for name in ("text", "held-out"))
    return Read(vocabulary, TextStatistics(**load_record(folder)), (learned, held_out))


TEXTS = Filing(_save_read, _load_read)


def _lines(texts: tuple[str, ...], observer: Observer, should_stop: Callable[[], bool]) -> Lines:
    """The lines of texts that are known to be there."""
    if STANDARD_STREAM in texts:
        raise InputError("a text to train on must be a file: it is read twice")
    paths = [existing_input(text) for text in texts]

    def lines() -> Iterator[bytes]:
        for block in read_watched(paths, observer, should_stop):
            yield from block.removesuffix(b"\n").split(b"\n")

    return lines


def _plan_of(request: CslmRequest, processes: int) -> CslmPlan:
    """The preset with what the request overrides; sets the number of threads that torch uses."""
    preset = CSLM_PRESETS[preset_name(request)]
    network = {**{name: getattr(preset, name) for name in SIZES}, **request.given(*SIZES)}
    training = request.learning(preset.training)
    return CslmPlan(
        network=network,
        text=TextConfig(request.shortlist or preset.shortlist, request.held_out or 0, request.seed),
        learning=replace(preset.learning, **request.given("self_normalise")),
        training=replace(
            training,
            precision=choose_precision(request.precision, request.device, network["first_size"]),
            threads=threads_for(request, rows_at_once(training, processes)),
        ),
    )


def _counted(lines: Iterable[bytes]) -> tuple[Counter[bytes], int]:
    """How often each word occurs, and the number of lines.

    Raises:
        InputError: there is no word.
    """
    counts: Counter[bytes] = Counter()
    number = 0
    for number, line in enumerate(lines, start=1):  # noqa: B007, the last one is the count
        counts.update(words(line.rstrip(b"\r\n")))
    for special in NOT_WORDS:
        counts.pop(special, None)
    if not counts:
        raise InputError(f"expected a text to train on, found no word in {number} lines")
    return counts, number


def _describe_text(statistics: TextStatistics, vocabulary: Vocabulary) -> list[str]:
    """What a text holds, in lines for a log."""
    n = statistics
    return [
        f"text: {n.lines:,} lines, {n.words:,} words, {n.distinct_words:,} distinct",
        f"shortlist: {len(vocabulary) - 2:,} words, {n.coverage:.2%} of running words",
        *[f"held out: {n.held_out_lines:,} lines"] * bool(n.held_out_lines),
    ]


def _provenance(request: CslmRequest, plan: CslmPlan, statistics: TextStatistics) -> dict[str, Any]:
    """What a checkpoint remembers of its run."""
    return {
        "version": __version__,
        "torch": torch.__version__,
        "texts": [Path(text).name for text in request.texts],
        "device": request.device,
        "text_options": asdict(plan.text),
        "learning": asdict(plan.learning),
        "training_options": asdict(plan.training),
        "text": asdict(statistics),
    }
