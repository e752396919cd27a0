"""Training materials: the pairs of a phrase table or of two parallel texts, or a text."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, Protocol

from moses_rnn.errors import FormatError, InputError, Stopped, number_of, shown
from moses_rnn.files.shards import count_lines
from moses_rnn.files.streams import (
    STANDARD_STREAM,
    Meter,
    as_text,
    find_input,
    read_blocks,
    read_text,
    regular_file,
)
from moses_rnn.models.rare_words import WINDOW, RareWords, Shortlists, reserved_word
from moses_rnn.moses.alignments import Links, check_links, read_links, transposed
from moses_rnn.networks.config import SENTENCES
from moses_rnn.networks.subwords import Subwords
from moses_rnn.networks.vocabulary import shortlist
from moses_rnn.table.phrases import PhraseForm, words
from moses_rnn.table.tab_separated import as_table_blocks
from moses_rnn.table.table_blocks import parse_blocks
from moses_rnn.training.corpus import Corpus, CorpusConfig, build_corpus
from moses_rnn.training.presets import Preset
from moses_rnn.training.ranks import Ranks
from moses_rnn.training.text_corpus import TextConfig, TextCorpus, build_text_corpus
from moses_rnn.training.training_options import Options

ANNOUNCEMENT = "corpus"  # made by the first of several processes
WITHOUT_ORDER = 2  # one <s> before each sentence


@dataclass(frozen=True)
class Watch:
    """Callbacks while a material is read."""

    reading: Callable[[int, float | None], None]  # gets the number of lines read and their share
    should_stop: Callable[[], bool]  # called regularly

    def look(self, meter: Meter, path: str) -> None:
        """Report how much of a file was read; raise Stopped if asked to stop."""
        self.reading(meter.lines_read, meter.share)
        if self.should_stop():
            raise Stopped(f"stopped while reading {path}; run the same command again to start over")


class Material(Protocol):
    """Training material, made from a training's options, its preset and a `Watch`."""

    name: str  # of the corpus, in a checkpoint's provenance
    corpus: Any  # class of the corpus, with `save` and `load`
    origin: dict[str, Any]  # names of files and other facts for a checkpoint
    config: Any  # a dataclass of options for the corpus

    def build(self, folder: Path) -> Any:
        """Build the corpus, with its arrays as files in a folder."""

    def describe(self, corpus: Any) -> list[str]:
        """Describe a corpus in lines for a log."""


class TablePairs:
    """The pairs of a phrase table; the constructor reads the first block and raises FormatError if it is invalid."""

    name, corpus = "corpus", Corpus

    def __init__(self, options: Options, preset: Preset, watch: Watch) -> None:
        path = find_input(options["phrase_table"])
        if path == STANDARD_STREAM:
            raise InputError(
                f"{path}: expected a file, which continuing the training reads again, found standard input"
            )
        texts = read_watched([path], watch)
        if options["layout"] == "tsv":
            texts = as_table_blocks(texts, path)
        blocks = parse_blocks(texts, path, form=PhraseForm(options["source_factor"], options["target_factor"]))
        first = next(blocks)
        self._path, self._blocks, self._inverse = path, itertools.chain([first], blocks), options["inverse"]
        longest = options["max_length"] or preset.network.get("slots", 0)
        size, seed = preset.shortlist, preset.training.seed
        self.config = CorpusConfig(size, size, options["held_out"], longest, seed)
        self.origin = {
            "table": Path(path).name,
            "embeddings": {side: Path(file).name for side, file in find_embeddings(options).items()},
            "phrases": asdict(first.form),
        }

    def build(self, folder: Path) -> Corpus:
        """See `Material`."""
        sides = (block.pairs().sides(inverse=self._inverse) for block in self._blocks)
        pairs = itertools.chain.from_iterable(zip(*both, strict=True) for both in sides)
        return build_corpus(pairs, folder, self.config, names=(self._path, ""))

    def describe(self, corpus: Corpus) -> list[str]:
        """See `Material`."""
        n = corpus.statistics
        collapsed = n.collapsed_pairs / n.distinct_pairs
        return [
            f"table: {number_of(n.pairs, 'line')}, {number_of(n.distinct_pairs, 'distinct pair')}; {collapsed:.2%} "
            "equal another pair after rare words become <unk>, and are learned once",
            *_describe_words(corpus, "source shortlist", "target shortlist"),
            f"training pairs: {n.training_pairs:,}; held out by source phrase: {n.held_out_pairs:,}",
        ]


def _describe_words(corpus: Corpus, read: str, written: str, rare: RareWords | None = None) -> list[str]:
    n = corpus.statistics
    both = corpus.source_vocabulary, corpus.target_vocabulary
    tokens = (rare.read_tokens, rare.written_tokens) if rare else ((), ())  # which are no words
    sizes = [
        f"{number_of(len(one), one.unit)} for"
        if isinstance(one, Subwords)
        else f"{len(one) - 2 - len(tokens_of_one):,} of"
        for one, tokens_of_one in zip(both, tokens, strict=True)
    ]
    return [
        f"left out: {number_of(n.too_long, 'pair')} longer than max_length, {n.empty:,} with an empty side",
        f"{read}: {sizes[0]} {number_of(n.source_words, 'word')}, {n.source_coverage:.2%} of running words",
        f"{written}: {sizes[1]} {number_of(n.target_words, 'word')}, {n.target_coverage:.2%} of running words",
    ]


def find_embeddings(options: Options) -> dict[str, str]:
    """Return the given embedding files by the network's side: it reads "source"."""
    named = {side: options.get(f"{side}_embeddings") for side in ("source", "target")}
    if options.get("inverse"):
        named = {"source": named["target"], "target": named["source"]}
    return {side: regular_file(path) for side, path in named.items() if path}


def read_watched(paths: Sequence[str], watch: Watch, *, texts: bool = False) -> Iterator[bytes]:
    """Yield files, perhaps texts, in blocks of whole lines, reporting to `watch`; raises as `Watch.look` does."""
    meter = Meter()
    for path in paths:
        blocks = read_blocks(path, meter=meter)
        for block in as_text(blocks, path) if texts else blocks:
            yield block
            watch.look(meter, path)


def build_on_first_rank(ranks: Ranks, folder: Path, material: Material, should_stop: Callable[[], bool]) -> Any:
    """Build the corpus of a material; of several ranks, the first builds it, and all map its files."""
    if ranks.size == 1:
        return material.build(folder)
    if ranks.leads:
        material.build(folder).save(folder)
        ranks.announce(ANNOUNCEMENT, str(folder))
    else:
        ranks.wait_for(ANNOUNCEMENT, should_stop)
    try:
        corpus = material.corpus.load(folder)
    except OSError as error:
        raise InputError(
            f"{error.filename or folder}: expected the files that the first process wrote there, found: "
            f"{error.strerror}",
            advice="Machines that train together must share the model folder.",
        ) from error
    ranks.sums([0.0])  # wait for all: from now on, the first rank removes the files if it fails
    return corpus


# --- parallel texts ---------------------------------------------------------------------------------------------------


Pair = tuple[bytes, bytes]
Aligned = tuple[list[bytes], list[bytes], Links]
LINES_AT_ONCE = 1 << 14  # between two checks whether to stop


@dataclass(frozen=True)
class ParallelTexts:
    """Two files with parallel lines, and the links between their words if needed.

    Raise InputError unless all files have the same number of lines.
    """

    source: str
    target: str
    links: str | None = None

    @classmethod
    def of_prefix(cls, prefix: str, source: str, target: str, alignment: str | None = None) -> ParallelTexts:
        """Find PREFIX.SOURCE, PREFIX.TARGET and their alignment, plain or compressed."""
        texts = [regular_file(f"{prefix}.{ending}") for ending in (source, target)]
        return cls(texts[0], texts[1], alignment and regular_file(alignment))

    def __str__(self) -> str:
        return f"{self.source}, {self.target}"

    def __post_init__(self) -> None:
        source, target = (count_lines(path) for path in (self.source, self.target))
        if source != target:
            raise InputError(
                f"{self}: expected as many lines in both, found {source:,} and {target:,}",
                advice="Line N of one is the translation of line N of the other.",
            )
        if self.links and (found := count_lines(self.links)) != source:
            raise InputError(
                f"{self.links}: expected as many lines as {self.source} and {self.target} have, {source:,}, "
                f"found {found:,}",
                advice="Line N aligns line N of both texts: 0-0 1-2 …, positions from 0, source first.",
            )

    def pairs(self, watch: Watch) -> Iterator[Pair]:
        """Yield the pairs, line by line, without line ends."""
        meter = Meter()
        both = zip_longest(read_text(self.source, meter=meter), read_text(self.target))
        while together := list(islice(both, LINES_AT_ONCE)):
            for source, target in together:
                if source is None or target is None:
                    raise InputError(f"{self}: were changed while they were read")
                yield source.rstrip(b"\r\n"), target.rstrip(b"\r\n")
            watch.look(meter, self.source)

    def aligned_pairs(self, watch: Watch) -> Iterator[Aligned]:
        """Yield source words, target words and links, line by line."""
        if self.links is None:
            links: Iterator[Links] = iter(lambda: (), None)
        else:
            links = read_links(read_text(self.links), self.links)
        for number, (source, target) in enumerate(self.pairs(watch), 1):
            of_pair = next(links, None)
            if of_pair is None:
                raise InputError(f"{self.links}: was changed while it was read")
            both = words(source), words(target)
            for path, text in zip((self.source, self.target), both, strict=True):
                if (token := reserved_word(text)) is not None:
                    advice = "Such words stand for rare ones; in text escaped for Moses, &lt; replaces <."
                    raise FormatError(path, number, "no word that is spelled like a token", shown(token), advice)
            check_links(of_pair, len(both[0]), len(both[1]), str(self.links), number)
            yield *both, of_pair


class SentencePairs:
    """Two parallel texts."""

    name, corpus = "corpus", Corpus

    def __init__(self, options: Options, preset: Preset, watch: Watch) -> None:
        self._watch, self._inverse = watch, options["inverse"]
        endings = options["source"], options["target"]
        texts = ParallelTexts.of_prefix(options["prefix"], *endings, options.get("alignment"))
        dev = options["dev"] and ParallelTexts.of_prefix(options["dev"], *endings, options.get("dev_alignment"))
        self._texts, self._dev = texts, dev
        self._names = str(texts), str(dev or "")
        self._rare = rare_words_of(options) if options.get("rare") else None
        read, written = options["source_words"], options["target_words"]
        if self._inverse:
            read, written = written, read
        self.config = CorpusConfig(
            read or preset.words_read or preset.shortlist,
            written or preset.shortlist,
            held_out_pairs=options["held_out"],
            max_length=options["max_length"],
            seed=preset.training.seed,
            repeated=True,
            min_count=preset.min_count,
            backwards=options["right_to_left"],
            subwords=options["subwords"] or 0,
        )
        alignment = options.get("alignment")
        self.origin = {
            "unit": SENTENCES,
            "texts": [f"{Path(options['prefix']).name}.{ending}" for ending in endings],
            "dev": options["dev"] and Path(options["dev"]).name,
            "alignment": alignment and Path(alignment).name,
        }

    def build(self, folder: Path) -> Corpus:
        """See `Material`."""
        if self._rare is not None:
            return self._build_annotated(folder, self._rare)
        held_out = self._pairs(self._dev) if self._dev else None
        return build_corpus(self._pairs(self._texts), folder, self.config, held_out=held_out, names=self._names)

    def _build_annotated(self, folder: Path, rare: RareWords) -> Corpus:
        """Count words in a first pass, which decides which are rare; annotate in a second pass."""
        config, counts = self.config, self._count()
        sizes = config.source_words, config.target_words
        lists = [shortlist(side, size, config.min_count) for side, size in zip(counts, sizes, strict=True)]
        known = Shortlists(*(frozenset(vocabulary.words[2:]) for vocabulary in lists))
        corpus = build_corpus(
            self._annotated(self._texts, rare, known),
            folder,
            replace(config, marked=rare.doubles),
            word_counts=counts,
            held_out=self._annotated(self._dev, rare, known) if self._dev else None,
            tokens=(rare.read_tokens, rare.written_tokens),
            names=self._names,
        )
        seen = {"source_words": len(counts[0]), "target_words": len(counts[1])}
        return replace(corpus, statistics=replace(corpus.statistics, **seen))

    def _count(self) -> tuple[Counter[bytes], Counter[bytes]]:
        """Count the words that are read and those that are written in the training pairs."""
        reads: Counter[bytes] = Counter()
        writes: Counter[bytes] = Counter()
        for read, written, _ in self._aligned(self._texts):
            if read and written and not 0 < self.config.max_length < max(len(read), len(written)):
                reads.update(read)
                writes.update(written)
        return reads, writes

    def _annotated(self, texts: ParallelTexts, rare: RareWords, known: Shortlists) -> Iterator[Pair]:
        """Yield the annotated pairs, as read and written by the network."""
        for read, written, links in self._aligned(texts):
            annotated = rare.annotate(read, written, links, known)
            yield b" ".join(annotated[0]), b" ".join(annotated[1])

    def _aligned(self, texts: ParallelTexts) -> Iterator[Aligned]:
        """Yield the words read, the words written, and the links from the former to the latter."""
        for source, target, links in texts.aligned_pairs(self._watch):
            yield (target, source, transposed(links)) if self._inverse else (source, target, links)

    def _pairs(self, texts: ParallelTexts) -> Iterator[Pair]:
        """Yield pairs of a text to read and a text to write."""
        for source, target in texts.pairs(self._watch):
            yield (target, source) if self._inverse else (source, target)

    def describe(self, corpus: Corpus) -> list[str]:
        """See `Material`."""
        n = corpus.statistics
        kept = "a text of its own" if self._dev else "chosen by source sentence"
        return [
            f"texts: {number_of(n.pairs, 'pair')}, {n.distinct_pairs:,} distinct; each is learned as often as "
            "it occurs",
            *_describe_words(corpus, "read", "written", self._rare),
            f"training pairs: {n.training_pairs:,}; held out: {n.held_out_pairs:,}, {kept}",
        ]


def rare_words_of(options: Options) -> RareWords:
    """Return how rare words are annotated."""
    return RareWords(options["rare"], options.get("rare_window") or WINDOW)


# --- a text -----------------------------------------------------------------------------------------------------------


class TextLines:
    """A text, from one or more files."""

    name, corpus = "text", TextCorpus

    def __init__(self, options: Options, preset: Preset, watch: Watch) -> None:
        self._texts = [regular_file(text) for text in options["texts"]]
        self._dev = [regular_file(options["dev"])] if options["dev"] else []
        self._watch = watch
        self._order = preset.network.get("order", WITHOUT_ORDER)
        self.config = TextConfig(
            preset.shortlist,
            options["held_out"] or 0,
            preset.training.seed,
            preset.min_count,
            options["subwords"] or 0,
        )
        self.origin = {"texts": [Path(text).name for text in options["texts"]]}

    def build(self, folder: Path) -> TextCorpus:
        """See `Material`."""
        names = ", ".join(self._texts), ", ".join(self._dev)
        dev = (lambda: self._lines(self._dev)) if self._dev else None
        return build_text_corpus(lambda: self._lines(self._texts), dev, names, folder, self._order, self.config)

    def _lines(self, paths: Sequence[str]) -> Iterator[bytes]:
        for block in read_watched(paths, self._watch, texts=True):
            yield from block.removesuffix(b"\n").split(b"\n")

    def describe(self, corpus: TextCorpus) -> list[str]:
        """See `Material`."""
        n = corpus.statistics
        known = f"shortlist: {number_of(len(corpus.vocabulary) - 2, 'word')}"
        if isinstance(corpus.vocabulary, Subwords):
            known = f"written: {number_of(len(corpus.vocabulary), 'subword')}"
        described = [
            f"text: {number_of(n.lines, 'line')}, {number_of(n.words, 'word')}, {n.distinct_words:,} distinct",
            f"{known}, {n.coverage:.2%} of running words",
        ]
        if n.held_out_lines:
            described.append(f"held out: {number_of(n.held_out_lines, 'line')}")
        return described
