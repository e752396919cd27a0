"""Two texts whose rare words are annotated by their word alignment, as training material.

A first pass counts words, which decides what is rare; a second one annotates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from moses_rnn.errors import FormatError, InputError, shown
from moses_rnn.files.streams import read_lines
from moses_rnn.formats.alignments import Links, broken, check_links, read_links, transposed
from moses_rnn.formats.phrase_forms import words
from moses_rnn.formats.rare_words import RareWords, Shortlists, Words, reserved_word
from moses_rnn.networks.vocabulary import shortlist
from moses_rnn.training.corpus import Corpus, CorpusConfig, build_corpus
from moses_rnn.training.parallel import ParallelTexts, count_lines, existing_text

Counts = tuple[Counter[bytes], Counter[bytes]]  # of what is read, and of what is written
Watch = tuple[Callable[[int, float | None], None], Callable[[], bool]]  # see `ParallelTexts.pairs`


@dataclass(frozen=True)
class AlignedTexts:
    """Two texts and the links between their words, a line for each pair; `links` is None if they are not needed."""

    texts: ParallelTexts
    links: str | None

    @classmethod
    def of(cls, texts: ParallelTexts, alignment: str | None) -> AlignedTexts:
        """With an alignment of as many lines, if there is one.

        Raises:
            InputError: it does not exist, or has another number of lines.
        """
        if alignment is None:
            return cls(texts, None)
        path = existing_text(alignment)
        expected, found = texts.check_lengths(), count_lines(path)
        if found != expected:
            raise InputError(
                f"{path}: expected as many lines as {texts.source} and {texts.target} have, {expected:,}, "
                f"found {found:,}",
                advice="Line N is the alignment of their lines N: 0-0 1-2 …, positions from 0, source first.",
            )
        return cls(texts, path)

    def pairs(self, watch: Watch) -> Iterator[tuple[list[bytes], list[bytes], Links]]:
        """Source words, target words and links, line by line.

        Raises:
            FormatError: a word is spelled as a token, or links are none or of other words.
        """
        if self.links is None:
            links: Iterator[Links] = iter(lambda: (), None)
        else:
            links = read_links(read_lines(self.links), self.links)
        for number, ((source, target), of_pair) in enumerate(zip(self.texts.pairs(*watch), links, strict=False), 1):
            both = words(source), words(target)
            for path, text in zip((self.texts.source, self.texts.target), both, strict=True):
                _refuse_tokens(path, number, text)
            try:
                check_links(of_pair, len(both[0]), len(both[1]))
            except ValueError as error:
                raise broken(str(self.links), number, error) from error
            yield *both, of_pair


def _refuse_tokens(path: str, number: int, text: list[bytes]) -> None:
    token = reserved_word(text)
    if token is not None:
        advice = "Such words stand for rare ones; Moses's escaped text has &lt; in place of <."
        raise FormatError(path, number, "no word that is spelled as a token", shown(token), advice)


@dataclass(frozen=True)
class Annotation:
    """What is annotated, and how; `inverse`: the target is read and the source written."""

    rare: RareWords
    texts: AlignedTexts
    dev: AlignedTexts | None
    inverse: bool

    def build(self, folder: Path, config: CorpusConfig, watch: Watch) -> Corpus:
        """Training material.

        Args:
            folder: for the arrays' files.
            config: its shortlists decide what is rare.
            watch: see `ParallelTexts.pairs`.

        Raises:
            InputError: see `AlignedTexts.pairs` and `build_corpus`.
        """
        counts = self.count(config, watch)
        known = shortlists_by(counts, config)
        corpus = build_corpus(
            _joined(self.annotated(self.texts, known, watch)),
            folder,
            replace(config, marked=self.rare.doubles),
            word_counts=counts,
            held_out=None if self.dev is None else _joined(self.annotated(self.dev, known, watch)),
            tokens=(self.rare.read_tokens, self.rare.written_tokens),
        )
        seen = {"source_words": len(counts[0]), "target_words": len(counts[1])}
        return replace(corpus, statistics=replace(corpus.statistics, **seen))

    def _turned(self, texts: AlignedTexts, watch: Watch) -> Iterator[tuple[list[bytes], list[bytes], Links]]:
        """What is read, what is written, and the links from the one to the other."""
        for source, target, links in texts.pairs(watch):
            yield (target, source, transposed(links)) if self.inverse else (source, target, links)

    def count(self, config: CorpusConfig, watch: Watch) -> Counts:
        """How often words occur in the pairs that are learned."""
        counts: Counts = (Counter(), Counter())
        for read, written, _ in self._turned(self.texts, watch):
            longest = max(len(read), len(written))
            if read and written and not 0 < config.max_length < longest:
                counts[0].update(read)
                counts[1].update(written)
        return counts

    def annotated(self, texts: AlignedTexts, known: Shortlists, watch: Watch) -> Iterator[tuple[Words, Words]]:
        """What is read and what is written of each pair."""
        for read, written, links in self._turned(texts, watch):
            yield self.rare.annotate(read, written, links, known)


def shortlists_by(counts: Counts, config: CorpusConfig) -> Shortlists:
    """The words that are not rare, of what is read and of what is written."""
    sizes = config.source_words, config.target_words
    read, written = (
        frozenset(shortlist(of_side, size, config.min_count).words[2:])
        for of_side, size in zip(counts, sizes, strict=True)
    )
    return Shortlists(read, written)


def _joined(pairs: Iterator[tuple[Words, Words]]) -> Iterator[tuple[bytes, bytes]]:
    return ((b" ".join(read), b" ".join(written)) for read, written in pairs)
