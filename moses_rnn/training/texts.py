"""A text as training material of a language model, however long: ids stay on disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from moses_rnn.errors import InputError
from moses_rnn.networks.vocabulary import END_ID, Ids, Vocabulary, coverage, shortlist
from moses_rnn.table.phrase_table import words
from moses_rnn.training.corpus import NumberFile, Positions, load_words, map_ids, read_record, save_record, save_words
from moses_rnn.training.materials import Watch, existing_file, read_watched
from moses_rnn.training.networks import Chosen

NOT_WORDS = (b"<s>", b"<null>")  # of NPLM and KenLM; such a word of a text is an unknown one
WITHOUT_ORDER = 2  # one <s> before each sentence
BLOCK = 1 << 22  # words and boundaries at once
MAX_HELD_OUT_SHARE = 0.1
Lines = Callable[[], Iterable[bytes]]  # of a text, which is read from the beginning each time


@dataclass(frozen=True)
class TextConfig:
    """What is made of a text; `held_out_lines` of it, at most a tenth, are chosen by the seed and not trained on."""

    shortlist: int = 15_000
    held_out_lines: int = 0  # 0: the paper's 0.1 %, but at least 1 000
    seed: int = 1
    min_count: int = 1  # of a word of the shortlist


@dataclass(frozen=True)
class TextStatistics:
    """What a reader of a training log wants to know about a text."""

    lines: int
    words: int  # running, without end symbols
    distinct_words: int
    coverage: float  # share of the running words that the shortlist knows
    held_out_lines: int  # chosen from the text; 0 if another text is held out


@dataclass(frozen=True)
class Text:
    """Sentences as ids end to end, each behind order - 1 times ``<s>`` and before ``</s>``."""

    flat: Ids
    begin_id: int  # of <s>

    def predicted(self, first: int, last: int) -> Positions:
        """Where, from `first` to before `last`, words and end symbols stand."""
        return np.flatnonzero(self.flat[first:last] != self.begin_id) + first

    def tokens(self) -> int:
        """How many words and end symbols there are."""
        return sum(len(self.predicted(first, first + BLOCK)) for first in range(0, len(self.flat), BLOCK))


@dataclass(frozen=True)
class TextCorpus:
    """Training material: a text to learn, and one that is held out."""

    text: Text
    held_out: Text
    vocabulary: Vocabulary
    statistics: TextStatistics
    unigram_nats_per_token: None = None  # unknown

    @property
    def vocabularies(self) -> Mapping[str, Vocabulary]:
        """Of the one side."""
        return {"target": self.vocabulary}

    def save(self, folder: Path) -> None:
        """Write all but the words' ids, which are in files already."""
        save_record(folder, asdict(self.statistics))
        save_words(folder, self.vocabularies)

    @classmethod
    def load(cls, folder: Path) -> TextCorpus:
        """Map what `save` has written."""
        vocabulary = load_words(folder, "target")
        text, held_out = (Text(map_ids(folder / f"{name}.tokens"), len(vocabulary)) for name in ("text", "held-out"))
        return cls(text, held_out, vocabulary, TextStatistics(**read_record(folder)))


def build_text_corpus(
    text: Lines, dev: Lines | None, names: tuple[str, str], folder: Path, order: int, config: TextConfig
) -> TextCorpus:
    """Read a text twice: choose a shortlist, and write the ids of what is learned and of what is held out into files.

    Args:
        text: tokenised sentences.
        dev: another text to judge by; None holds some lines of this one out.
        names: of both, for messages.
        folder: for the files, which are replaced.
        order: n of the n-grams.
        config: shortlist, split, seed.

    Raises:
        InputError: a text has no words, or none that is seen often enough.
    """
    counts, lines = _count(text, names[0])
    frequent = {word: count for word, count in counts.items() if count >= config.min_count}
    if not frequent:
        raise InputError(f"{names[0]}: expected words seen {config.min_count:,} times or more, found none")
    vocabulary = shortlist(frequent, config.shortlist)
    chosen = None if dev else chosen_lines(lines, config)
    try:
        texts = build_texts(text(), dev() if dev else None, folder, vocabulary, order, chosen)
    except InputError as error:  # of a text with words: what is held out has none
        raise InputError(f"{names[1] if dev else names[0]}: {error}") from error
    aside = 0 if chosen is None else int(chosen.sum())
    known = coverage(counts, vocabulary)
    return TextCorpus(*texts, vocabulary, TextStatistics(lines, sum(counts.values()), len(counts), known, aside))


def _count(text: Lines, name: str) -> tuple[Counter[bytes], int]:
    """How often each word occurs, and the number of lines."""
    counts: Counter[bytes] = Counter()
    number = 0
    for number, line in enumerate(text(), start=1):  # noqa: B007, the last one is the count
        counts.update(words(line.rstrip(b"\r\n")))
    for special in NOT_WORDS:
        counts.pop(special, None)
    if not counts:
        raise InputError(f"{name}: expected a text to train on, found no word in {number} lines")
    return counts, number


def build_texts(
    lines: Iterable[bytes],
    held_out: Iterable[bytes] | None,
    folder: Path,
    vocabulary: Vocabulary,
    order: int,
    chosen: npt.NDArray[np.bool_] | None = None,
) -> tuple[Text, Text]:
    """Write a text's ids into files, and those of the held-out one.

    Args:
        lines: tokenised sentences; empty ones are left out.
        held_out: another text to judge by; None takes the `chosen` lines of this one.
        folder: for the files, which are replaced.
        vocabulary: the shortlist.
        order: n of the n-grams.
        chosen: which lines are held out.

    Raises:
        InputError: one of the texts is empty.
    """
    texts = [_Writer(folder / f"{name}.tokens", vocabulary, order) for name in ("text", "held-out")]
    for number, line in enumerate(lines):
        texts[held_out is None and chosen is not None and bool(chosen[number])].add(line)
    for line in held_out or ():
        texts[1].add(line)
    kept, judging = (writer.text() for writer in texts)
    if not len(kept.flat) or not len(judging.flat):
        what = "a text to train on" if not len(kept.flat) else "held-out lines"
        raise InputError(f"expected {what}, found no line with words")
    return kept, judging


def chosen_lines(lines: int, config: TextConfig) -> npt.NDArray[np.bool_]:
    """Which lines of a text are held out."""
    wanted = config.held_out_lines or max(1000, lines // 1000)
    count = max(min(wanted, int(MAX_HELD_OUT_SHARE * lines)), 1)
    chosen = np.zeros(lines, np.bool_)
    chosen[np.random.default_rng(config.seed).permutation(lines)[:count]] = True
    return chosen


class _Writer:
    """Streams sentences into a file of ids."""

    def __init__(self, path: Path, vocabulary: Vocabulary, order: int) -> None:
        self._file = NumberFile(path)
        self._ids_of = vocabulary.ids
        self._begin_id = len(vocabulary)
        self._before = [self._begin_id] * (order - 1)

    def add(self, line: bytes) -> None:
        if sentence := words(line.rstrip(b"\r\n")):
            self._file.numbers.extend([*self._before, *self._ids_of(sentence), END_ID])
            if len(self._file.numbers) > BLOCK:
                self._file.flush()

    def text(self) -> Text:
        path = self._file.path
        self._file.flush()
        return Text(map_ids(path) if path.stat().st_size else np.zeros(0, np.int32), self._begin_id)


class TextLines:
    """A text of several files, taken as one.

    Raises:
        InputError: one is not there.
    """

    name, corpus = "text", TextCorpus

    def __init__(self, chosen: Chosen, watch: Watch) -> None:
        options, preset = chosen.options, chosen.preset
        self._texts = [existing_file(text) for text in options["texts"]]
        self._dev = [existing_file(options["dev"])] if options["dev"] else []
        self._watch = watch
        self._order = preset.network.get("order", WITHOUT_ORDER)
        self.config = TextConfig(preset.shortlist, options["held_out"] or 0, options["seed"], preset.min_count)
        self.origin = {"texts": [Path(text).name for text in options["texts"]]}

    def build(self, folder: Path) -> TextCorpus:
        """See `Material`."""
        names = ", ".join(self._texts), ", ".join(self._dev)
        dev = (lambda: self._lines(self._dev)) if self._dev else None
        return build_text_corpus(lambda: self._lines(self._texts), dev, names, folder, self._order, self.config)

    def _lines(self, paths: Sequence[str]) -> Iterator[bytes]:
        for block in read_watched(paths, self._watch):
            yield from block.removesuffix(b"\n").split(b"\n")

    def describe(self, corpus: TextCorpus) -> list[str]:
        """See `Material`."""
        n = corpus.statistics
        return [
            f"text: {n.lines:,} lines, {n.words:,} words, {n.distinct_words:,} distinct",
            f"shortlist: {len(corpus.vocabulary) - 2:,} words, {n.coverage:.2%} of running words",
            *[f"held out: {n.held_out_lines:,} lines"] * bool(n.held_out_lines),
        ]
