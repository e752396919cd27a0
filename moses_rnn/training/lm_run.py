"""Training language models: text to ids to network to model folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from moses_rnn import __version__
from moses_rnn.errors import InputError
from moses_rnn.files.streams import STANDARD_STREAM, existing_input
from moses_rnn.formats.phrase_forms import words
from moses_rnn.networks.bengio import BENGIO, Bengio, BengioConfig
from moses_rnn.networks.cslm import CSLM, Cslm, CslmConfig
from moses_rnn.networks.folders import Architecture
from moses_rnn.networks.hardware import choose_precision
from moses_rnn.networks.n_grams import NGramNetwork
from moses_rnn.networks.rnnlm import RNNLM, Rnnlm, RnnlmConfig
from moses_rnn.networks.vocabulary import Vocabulary, coverage, shortlist
from moses_rnn.producers.open import Model
from moses_rnn.training.config import Preset
from moses_rnn.training.corpus_files import (
    Filing,
    load_record,
    load_vocabulary,
    made_by_first,
    map_ids,
    save_record,
    save_vocabulary,
)
from moses_rnn.training.lm_config import LanguageModelRequest
from moses_rnn.training.model_folder import folder_of
from moses_rnn.training.n_grams import NGrams, Text, TextConfig, build_texts, chosen_lines
from moses_rnn.training.ranks import ALONE, Ranks
from moses_rnn.training.run import Outcome, read_watched, rows_at_once, threads_for
from moses_rnn.training.streams_of_text import Sentences
from moses_rnn.training.trainer import Observer, Task, Trainer

WITHOUT_ORDER = 2  # one <s> before each sentence
NOT_WORDS = (b"<s>", b"<null>")  # of NPLM and KenLM; such a word of a text is an unknown one
Network = Mapping[str, Any]  # sizes and switches


@dataclass(frozen=True)
class Lines:
    """A text of several files, which is read from the beginning each time it is called."""

    paths: tuple[str, ...]
    observer: Observer
    should_stop: Callable[[], bool]

    @property
    def name(self) -> str:
        """For messages."""
        return ", ".join(self.paths)

    def __call__(self) -> Iterator[bytes]:
        """Its lines, without their ends."""
        for block in read_watched(self.paths, self.observer, self.should_stop):
            yield from block.removesuffix(b"\n").split(b"\n")


class Learning(NamedTuple):
    """A network that can be trained: its kind, and how it and its task are made."""

    kind: Architecture
    make: Callable[[int, Network], Cslm | Bengio | Rnnlm]  # of the words; its weights are unset
    task: Callable[[Any, tuple[Text, Text], Preset], Task]


def _make_cslm(words: int, network: Network) -> Cslm:
    return Cslm(CslmConfig(words, **network), seed=None)


def _make_bengio(words: int, network: Network) -> Bengio:
    return Bengio(BengioConfig(words, **network), seed=None)


def _make_rnnlm(words: int, network: Network) -> Rnnlm:
    return Rnnlm(RnnlmConfig(words, **network), seed=None)


def _n_grams(model: NGramNetwork, texts: tuple[Text, Text], preset: Preset) -> NGrams:
    return NGrams(model, *texts, preset.training, preset.learning["self_normalise"])


def _sentences(model: Rnnlm, texts: tuple[Text, Text], preset: Preset) -> Sentences:
    return Sentences(model, *texts, preset.training, int(preset.learning["bptt"]))


LEARNINGS = {
    "cslm": Learning(CSLM, _make_cslm, _n_grams),
    "bengio": Learning(BENGIO, _make_bengio, _n_grams),
    "rnnlm": Learning(RNNLM, _make_rnnlm, _sentences),
}


@dataclass(frozen=True)
class TextStatistics:
    """What a reader of a training log wants to know about a text."""

    lines: int
    words: int  # running, without end symbols
    distinct_words: int
    coverage: float  # share of the running words that the shortlist knows
    held_out_lines: int  # chosen from the text; 0 if another text is held out


def train_language_model(
    request: LanguageModelRequest, observer: Observer, should_stop: Callable[[], bool], ranks: Ranks = ALONE
) -> Outcome:
    """Train a language model on tokenised texts taken as one, or continue a run that was stopped.

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
    preset = _preset_of(request, ranks.size)
    learning = LEARNINGS[request.network]
    with folder_of(ranks, request.model, learning.kind, restart=request.restart) as kept:
        kept.check_choices({**preset.network, **preset.learning, **preset.training.course()})
        config = _text_config(request, preset)
        vocabulary, statistics, texts = made_by_first(
            ranks, kept.arrays, TEXTS, lambda: _read(text, dev, preset, config, kept.arrays), should_stop
        )
        observer.corpus_read(_describe_text(statistics, vocabulary))
        model = learning.make(len(vocabulary), preset.network)
        model.initialise(preset.training.seed, preset.training.initial_deviation)
        model.to(request.device)
        kept.checkpoint = Model(
            learning.kind, model, {"target": vocabulary}, provenance=_provenance(request, preset, statistics)
        )
        task = learning.task(model, texts, preset)
        return Outcome(Trainer(task, preset.training, ranks).run(kept, observer, should_stop))


class Read(NamedTuple):
    """What is made of a text."""

    vocabulary: Vocabulary
    statistics: TextStatistics
    texts: tuple[Text, Text]  # what is learned, and what is held out


def _read(text: Lines, dev: Lines | None, preset: Preset, config: TextConfig, arrays: Path) -> Read:
    """The shortlist, and the ids of what is learned and of what is held out."""
    counts, lines = _counted(text)
    frequent = {word: count for word, count in counts.items() if count >= config.min_count}
    if not frequent:
        raise InputError(f"{text.name}: expected words seen {config.min_count:,} times or more, found none")
    vocabulary = shortlist(frequent, config.shortlist)
    chosen = None if dev else chosen_lines(lines, config)
    order = int(str(preset.network.get("order", WITHOUT_ORDER)))
    try:
        texts = build_texts(text(), dev() if dev else None, arrays, vocabulary, order, chosen)
    except InputError as error:  # of a text with words: what is held out has none
        raise InputError(f"{(dev or text).name}: {error}") from error
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
    return Lines(tuple(existing_input(text) for text in texts), observer, should_stop)


def _preset_of(request: LanguageModelRequest, processes: int) -> Preset:
    """The preset with what the request overrides; sets the number of threads that torch uses."""
    preset = request.chosen_preset()
    width = int(str(preset.network.get("first_size", preset.network.get("hidden_size"))))
    training = replace(
        preset.training,
        precision=choose_precision(request.precision, request.device, width),
        threads=threads_for(request, rows_at_once(preset.training, processes)),
    )
    return replace(preset, training=training)


def _text_config(request: LanguageModelRequest, preset: Preset) -> TextConfig:
    return TextConfig(preset.shortlist, request.held_out or 0, request.seed, preset.min_count)


def _counted(text: Lines) -> tuple[Counter[bytes], int]:
    """How often each word occurs, and the number of lines.

    Raises:
        InputError: there is no word.
    """
    counts: Counter[bytes] = Counter()
    number = 0
    for number, line in enumerate(text(), start=1):  # noqa: B007, the last one is the count
        counts.update(words(line.rstrip(b"\r\n")))
    for special in NOT_WORDS:
        counts.pop(special, None)
    if not counts:
        raise InputError(f"{text.name}: expected a text to train on, found no word in {number} lines")
    return counts, number


def _describe_text(statistics: TextStatistics, vocabulary: Vocabulary) -> list[str]:
    """What a text holds, in lines for a log."""
    n = statistics
    return [
        f"text: {n.lines:,} lines, {n.words:,} words, {n.distinct_words:,} distinct",
        f"shortlist: {len(vocabulary) - 2:,} words, {n.coverage:.2%} of running words",
        *[f"held out: {n.held_out_lines:,} lines"] * bool(n.held_out_lines),
    ]


def _provenance(request: LanguageModelRequest, preset: Preset, statistics: TextStatistics) -> dict[str, Any]:
    """What a checkpoint remembers of its run."""
    return {
        "version": __version__,
        "torch": torch.__version__,
        "texts": [Path(text).name for text in request.texts],
        "device": request.device,
        "text_options": asdict(_text_config(request, preset)),
        "learning": dict(preset.learning),
        "training_options": asdict(preset.training),
        "text": asdict(statistics),
    }
