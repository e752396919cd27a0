"""What networks learn from, in general, and the pairs of a phrase table; `parallel` and `texts` have the others."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from moses_rnn.errors import InputError, Stopped
from moses_rnn.files.streams import STANDARD_STREAM, Meter, find_input, read_blocks
from moses_rnn.table.phrase_table import PhraseForm
from moses_rnn.table.tab_separated import as_table_blocks
from moses_rnn.table.table_blocks import parse_blocks
from moses_rnn.training.corpus import Corpus, CorpusConfig, build_corpus
from moses_rnn.training.embeddings import GivenEmbeddings
from moses_rnn.training.networks import Chosen
from moses_rnn.training.ranks import Ranks

ANNOUNCEMENT = "corpus"  # of the first of several processes


@dataclass(frozen=True)
class Watch:
    """Who follows the reading of a material."""

    reading: Callable[[int, float | None], None]  # is told how many lines were read, and what share of them
    should_stop: Callable[[], bool]  # asked now and then

    def look(self, meter: Meter, path: str) -> None:
        """Say how far a file is read.

        Raises:
            Stopped: `should_stop` was true.
        """
        self.reading(meter.lines_read, meter.share)
        if self.should_stop():
            raise Stopped(f"stopped while reading {path}; run the same command again to start")


class Material(Protocol):
    """What is learned; it is made of what a training chooses, and of who follows how it is read."""

    name: str  # of the corpus, in a checkpoint's provenance
    corpus: Any  # its class, which can save one and map what another process has saved
    origin: dict[str, Any]  # names of files, and what else a checkpoint remembers
    config: Any  # a dataclass: what is made of the files

    def build(self, folder: Path) -> Any:
        """A corpus, whose arrays are files of a folder."""

    def describe(self, corpus: Any) -> list[str]:
        """What a corpus holds, in lines for a log."""


class TablePairs:
    """The pairs of a phrase table; its first block is read at once.

    Raises:
        InputError: it is not there, or its first block is no part of a table.
    """

    name, corpus = "corpus", Corpus

    def __init__(self, chosen: Chosen, watch: Watch) -> None:
        options, size = chosen.options, chosen.preset.shortlist
        path = existing_file(options["phrase_table"])
        texts = read_watched([path], watch)
        if options["layout"] == "tsv":
            texts = as_table_blocks(texts, path)
        blocks = parse_blocks(texts, path, form=PhraseForm(options["source_factor"], options["target_factor"]))
        first = next(blocks)
        self._blocks, self._inverse = itertools.chain([first], blocks), options["inverse"]
        longest = options["max_length"] or chosen.preset.network.get("slots", 0)
        self.config = CorpusConfig(size, size, options["held_out"], longest, options["seed"])
        self.origin = {
            "table": Path(path).name,
            "embeddings": {side: Path(file).name for side, file in GivenEmbeddings.of(options).files.items()},
            "phrases": first.form.as_record(),
        }

    def build(self, folder: Path) -> Corpus:
        """See `Material`."""
        sides = (block.pairs().sides(inverse=self._inverse) for block in self._blocks)
        pairs = (pair for sources, targets in sides for pair in zip(sources, targets, strict=True))
        return build_corpus(pairs, folder, self.config)

    def describe(self, corpus: Corpus) -> list[str]:
        """See `Material`."""
        n = corpus.statistics
        collapsed = n.collapsed_pairs / n.distinct_pairs
        return [
            f"table: {n.pairs:,} lines, {n.distinct_pairs:,} distinct pairs; {collapsed:.2%} equal another "
            "pair once rare words are <unk>, and are learned once",
            f"left out: {n.too_long:,} pairs longer than max_length, {n.empty:,} with an empty side",
            f"source shortlist: {len(corpus.source_vocabulary) - 2:,} of {n.source_words:,} words, "
            f"{n.source_coverage:.2%} of running words",
            f"target shortlist: {len(corpus.target_vocabulary) - 2:,} of {n.target_words:,} words, "
            f"{n.target_coverage:.2%} of running words",
            f"training pairs: {n.training_pairs:,}; held out by source phrase: {n.held_out_pairs:,}",
        ]


def existing_file(path: str) -> str:
    """A file that is read more than once, plain or compressed.

    Raises:
        InputError: it does not exist, or is standard input.
    """
    if path == STANDARD_STREAM:
        raise InputError("what is trained on must be a file: a stopped run reads it again")
    return find_input(path)


def read_watched(paths: Sequence[str], watch: Watch) -> Iterator[bytes]:
    """Files in blocks of whole lines, while somebody follows; raises what `Watch.look` does."""
    meter = Meter()
    for path in paths:
        for block in read_blocks(path, meter=meter):
            yield block
            watch.look(meter, path)


def built_by_first(ranks: Ranks, folder: Path, material: Material, should_stop: Callable[[], bool]) -> Any:
    """The corpus of a material; the first of several ranks builds it, and all map its files.

    Raises:
        InputError: this rank does not see the files of the first one.
        PeerFailed, Stopped: see `Ranks.wait_for`.
    """
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
            f"{error.filename or folder}: expected what the first process has written there, found: {error.strerror}",
            advice="Machines that train together must share the model's folder.",
        ) from error
    ranks.sums([0.0])  # the first removes the files if it fails from now on
    return corpus
