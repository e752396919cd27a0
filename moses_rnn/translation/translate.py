"""Sentences in, their likeliest translations out, by beam search with any network that writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any, NamedTuple

from moses_rnn.errors import FormatError
from moses_rnn.formats.phrase_forms import words
from moses_rnn.inference.steps import Stepper
from moses_rnn.models.vocabulary import UNKNOWN_ID, Vocabulary
from moses_rnn.translation.alignments import NO_ALPHA, Alpha, align, links
from moses_rnn.translation.beam_search import BeamConfig, BeamSearch
from moses_rnn.translation.hypotheses import PREFIXES_AT_ONCE, Hypothesis

LINES = 512  # of a block: sorted by length among themselves, and equal ones searched once
MOST_WORDS = 1000  # of a line
PREFIXES_NEAR = 1024  # searched together on a processor: enough for its products

Words = list[bytes]
SourceIds = tuple[int, ...]
FEW_LINE_ENDS = "Does the file lack line ends?"


class Candidate(NamedTuple):
    """A translation that the search proposes."""

    words: bytes  # with blanks between
    log_prob: float  # log p(words, </s> | source), natural; of what has not ended, of the words alone
    ended: bool  # or met the limit
    links: tuple[int, ...] | None  # for each word the source word that it looks at most, from 0; None: not asked for


@dataclass(frozen=True)
class Translation:
    """What became of a line."""

    source: Words
    candidates: Sequence[Candidate]  # best first, at least one; one that has not ended only where none has
    alpha: Alpha | None = None  # of the best; None: not asked for

    @property
    def best(self) -> Candidate:
        """The translation."""
        return self.candidates[0]


@dataclass
class Counts:
    """What was met while translating."""

    lines: int = 0
    empty: int = 0  # lines
    words: int = 0  # of the sources
    unknown: int = 0  # of them, read as <unk>
    unended: int = 0  # translations that met the limit
    written_unknown: int = 0  # <unk> among the words of the translations

    def add(self, more: Counts) -> None:
        """Count what was met elsewhere."""
        for counted in fields(self):
            setattr(self, counted.name, getattr(self, counted.name) + getattr(more, counted.name))


def _show_nothing(_lines: int) -> None:
    """In place of what follows a block."""


class Translator:
    """Translates lines.

    An empty line's translation is empty, with log p 0: the network is not asked. Words outside the shortlist are read
    as ``<unk>``; one that the network writes stays to be seen, unless the search may not write it.

    Args:
        source: what the network reads.
        target: what it writes.
        stepper: the network.
        config: how to search; of a line at most `best` candidates are given.
        aligned: of how many candidates to say which source words they look at; of the best also α.
    """

    def __init__(
        self,
        source: Vocabulary,
        target: Vocabulary,
        stepper: Stepper[Any, Any],
        config: BeamConfig,
        *,
        aligned: int = 0,
    ) -> None:
        self.counts = Counts()
        self._source = source
        self._target = target
        self._stepper = stepper
        self._search = BeamSearch(stepper, config)
        self.aligned = aligned
        prefixes = PREFIXES_NEAR if stepper.device.type == "cpu" else PREFIXES_AT_ONCE
        self._at_once = max(prefixes // config.width, 1)

    def __call__(self, lines: Iterable[bytes], name: str) -> Iterator[Translation]:
        """The translation of each line, in order.

        Args:
            lines: with or without their ends.
            name: of the text, for messages.

        Raises:
            FormatError: a line has more than `MOST_WORDS` words.
        """
        for block in blocks_of(lines, name):
            yield from self.translate(block)

    def translate(self, block: Sequence[Words], advanced: Callable[[int], None] = _show_nothing) -> list[Translation]:
        """The translations of lines that are searched together.

        Args:
            block: words of each line.
            advanced: called now and then with the number of lines that are done; may raise.
        """
        ids = [tuple(self._source.ids(line)) for line in block]
        distinct = sorted({line for line in ids if line}, key=lambda line: (len(line), line))
        translated: dict[SourceIds, tuple[list[Candidate], Alpha | None]] = {(): self._of_nothing()}
        for first in range(0, len(distinct), self._at_once):
            group = distinct[first : first + self._at_once]
            translated.update(zip(group, self._translate(group), strict=True))
            advanced(sum(line in translated for line in ids))
        translations = [Translation(line, *translated[key]) for line, key in zip(block, ids, strict=True)]
        self._count(translations, ids)
        return translations

    def _of_nothing(self) -> tuple[list[Candidate], Alpha | None]:
        return [Candidate(b"", 0.0, True, () if self.aligned else None)], NO_ALPHA if self.aligned else None

    def _translate(self, group: Sequence[SourceIds]) -> Iterator[tuple[list[Candidate], Alpha | None]]:
        """Candidates of sources, and α of the best."""
        proposed = [[h for h in of_source if h.ended] or of_source for of_source in self._search(group)]
        alphas = self._align(group, proposed)
        for hypotheses in proposed:
            of_source = [next(alphas) for _ in hypotheses[: self.aligned]]
            linked = [links(alpha, len(h.words)) for alpha, h in zip(of_source, hypotheses, strict=False)]
            further = [None] * (len(hypotheses) - len(linked))
            candidates = [
                Candidate(self._text(h), h.log_prob, h.ended, to)
                for h, to in zip(hypotheses, [*linked, *further], strict=True)
            ]
            yield candidates, of_source[0] if of_source else None

    def _align(self, group: Sequence[SourceIds], proposed: Sequence[Sequence[Hypothesis]]) -> Iterator[Alpha]:
        """α of each hypothesis for which it is wanted, source by source."""
        chosen = [hypotheses[: self.aligned] for hypotheses in proposed]
        sources = [source for source, of_source in zip(group, chosen, strict=True) for _ in of_source]
        return align(self._stepper, sources, [hypothesis for of_source in chosen for hypothesis in of_source])

    def _text(self, hypothesis: Hypothesis) -> bytes:
        return b" ".join(self._target.words[word] for word in hypothesis.words)

    def _count(self, translations: Sequence[Translation], ids: Sequence[SourceIds]) -> None:
        counts, unknown = self.counts, self._target.words[UNKNOWN_ID]
        counts.lines += len(translations)
        for translation, line in zip(translations, ids, strict=True):
            counts.empty += not line
            counts.words += len(line)
            counts.unknown += line.count(UNKNOWN_ID)
            counts.unended += not translation.best.ended
            counts.written_unknown += words(translation.best.words).count(unknown)


def blocks_of(lines: Iterable[bytes], name: str, first: int = 1) -> Iterator[list[Words]]:
    """The words of lines, of which the first has that number, in blocks of `LINES`, the last one of fewer.

    Raises:
        FormatError: a line has more than `MOST_WORDS` words.
    """
    parsed = _parsed(lines, name, first)
    while block := list(islice(parsed, LINES)):
        yield block


def _parsed(lines: Iterable[bytes], name: str, first: int) -> Iterator[Words]:
    for number, line in enumerate(lines, first):
        line_words = words(line.rstrip(b"\r\n"))
        if len(line_words) > MOST_WORDS:
            expected = f"at most {MOST_WORDS:,} words in a line to translate"
            raise FormatError(name, number, expected, f"{len(line_words):,}", FEW_LINE_ENDS)
        yield line_words
