"""The sentences of a text as word ids on disk, with a held-out text, to train language models on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from moses_rnn.errors import InputError
from moses_rnn.networks.subwords import learn_subwords
from moses_rnn.networks.vocabulary import END_ID, Ids, Vocabulary, coverage, shortlist
from moses_rnn.table.phrases import words
from moses_rnn.training.corpus import (
    BLOCK,
    MAX_HELD_OUT_SHARE,
    NumberFile,
    Positions,
    check_frequencies,
    map_ids,
    read_shared,
    share,
)

NOT_WORDS = (b"<s>", b"<null>")  # symbols of NPLM and KenLM; in a text, they are unknown words
Lines = Callable[[], Iterable[bytes]]  # reads a text from the beginning at each call


@dataclass(frozen=True)
class TextConfig:
    """Options for the corpus of a text; the seed chooses `held_out_lines` of it, at most a tenth."""

    shortlist: int = 15_000
    held_out_lines: int = 0  # 0: the paper's 0.1 %, but at least 1 000
    seed: int = 1
    min_count: int = 1  # of words in the shortlist, or of characters of subwords
    subwords: int = 0  # in place of a shortlist; 0: none


@dataclass(frozen=True)
class TextStatistics:
    """Statistics of a text for the training log."""

    lines: int  # with words
    words: int  # running, without end symbols
    distinct_words: int
    coverage: float  # share of running words that are in the shortlist, or can be cut into subwords
    held_out_lines: int  # chosen from the text; 0 if another text is held out


@dataclass(frozen=True)
class Text:
    """Concatenated sentences as ids, each with order - 1 times ``<s>`` before it and ``</s>`` after it."""

    flat: Ids
    begin_id: int  # of <s>

    def predicted(self, first: int, last: int) -> Positions:
        """Return the positions of words and end symbols from `first` to before `last`."""
        return np.flatnonzero(self.flat[first:last] != self.begin_id) + first

    def tokens(self) -> int:
        """Count the words and end symbols."""
        return sum(len(self.predicted(first, first + BLOCK)) for first in range(0, len(self.flat), BLOCK))


@dataclass(frozen=True)
class TextCorpus:
    """Training material: a training text and a held-out text."""

    text: Text
    held_out: Text
    vocabulary: Vocabulary
    statistics: TextStatistics
    unigram_nats_per_token: None = None  # unknown

    @property
    def vocabularies(self) -> Mapping[str, Vocabulary]:
        """Vocabularies by side; there is only "target"."""
        return {"target": self.vocabulary}

    def save(self, folder: Path) -> None:
        """Write everything except the word ids, already in files."""
        share(folder, asdict(self.statistics), self.vocabularies)

    @classmethod
    def load(cls, folder: Path) -> TextCorpus:
        """Map what `save` has written."""
        record, (vocabulary,) = read_shared(folder, "target")
        text, held_out = (Text(map_ids(folder / f"{name}.tokens"), len(vocabulary)) for name in ("text", "held-out"))
        return cls(text, held_out, vocabulary, TextStatistics(**record))


def build_text_corpus(
    text: Lines, dev: Lines | None, names: tuple[str, str], folder: Path, order: int, config: TextConfig
) -> TextCorpus:
    """Read a text twice: choose its words or subwords, then write the ids of training and held-out text into files.

    `dev` is a text to hold out; without it, some lines of `text` are held out. `names` are those of both, for messages.
    """
    counts, lines = _count(text, names[0])
    if config.subwords:
        vocabulary: Vocabulary = learn_subwords(counts, config.subwords, config.min_count)
    else:
        vocabulary = shortlist(counts, config.shortlist, config.min_count)
        check_frequencies(vocabulary, config.min_count, names[0])
    if not dev and lines == 1:
        raise InputError(f"{names[0]}: expected at least two lines with words, one of them to hold out, found one")
    chosen = None if dev else chosen_lines(lines, config)
    texts = build_texts(text(), dev() if dev else None, folder, vocabulary, order, chosen, names)
    aside = 0 if chosen is None else int(chosen.sum())
    known = coverage(counts, vocabulary)
    return TextCorpus(*texts, vocabulary, TextStatistics(lines, sum(counts.values()), len(counts), known, aside))


def _count(text: Lines, name: str) -> tuple[Counter[bytes], int]:
    """Count each word, and the lines with words."""
    counts: Counter[bytes] = Counter()
    lines = 0
    for lines, sentence in enumerate(_sentences(text()), start=1):  # noqa: B007, the last one is the count
        counts.update(sentence)
    for special in NOT_WORDS:
        counts.pop(special, None)
    if not counts:
        raise InputError(f"{name}: expected a text to train on, found no word")
    return counts, lines


def build_texts(
    lines: Iterable[bytes],
    held_out: Iterable[bytes] | None,
    folder: Path,
    vocabulary: Vocabulary,
    order: int,
    chosen: npt.NDArray[np.bool_] | None = None,
    names: tuple[str, str] = ("training text", "held-out text"),
) -> tuple[Text, Text]:
    """Write the ids of a text and of the held-out text (another one, or the `chosen` lines with words) into files.

    `names` are those of both texts, for messages.
    """
    files = [NumberFile(folder / f"{name}.tokens") for name in ("text", "held-out")]
    begin = len(vocabulary)  # the id of <s>

    def add(file: NumberFile, sentence: list[bytes]) -> None:
        file.extend([*[begin] * (order - 1), *vocabulary.ids(sentence), END_ID])

    for number, sentence in enumerate(_sentences(lines)):
        add(files[chosen is not None and bool(chosen[number])], sentence)
    for sentence in _sentences(held_out or ()):
        add(files[1], sentence)
    for file, name in zip(files, names, strict=True):
        file.flush()
        if not file.path.stat().st_size:
            raise InputError(f"{name}: expected lines with words, found none")
    text, judging = (Text(map_ids(file.path), begin) for file in files)
    return text, judging


def _sentences(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield the words of each line that has some."""
    return filter(None, (words(line.rstrip(b"\r\n")) for line in lines))


def chosen_lines(lines: int, config: TextConfig) -> npt.NDArray[np.bool_]:
    """Return a mask of the lines to hold out."""
    wanted = config.held_out_lines or max(1000, lines // 1000)
    count = max(min(wanted, int(MAX_HELD_OUT_SHARE * lines)), 1)
    chosen = np.zeros(lines, np.bool_)
    chosen[np.random.default_rng(config.seed).permutation(lines)[:count]] = True
    return chosen
