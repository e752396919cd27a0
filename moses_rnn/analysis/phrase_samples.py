"""Phrases of a table to look at a network with: a seeded sample in one pass, and each as it can be shown."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from moses_rnn.errors import InputError
from moses_rnn.files.streams import STANDARD_STREAM, Advanced, Meter, find_input, read_blocks, show_nothing
from moses_rnn.scorers.open import Model
from moses_rnn.table.phrase_table import read_first_line, words
from moses_rnn.table.table_blocks import TableLines, parse_blocks
from moses_rnn.translation.proposals import Reading

DIGEST_BYTES = 8


class Pair(NamedTuple):
    """A phrase pair in a network's words: what it reads, and what it predicts from it."""

    read: bytes
    written: bytes = b""


class PhraseSample:
    """A number of the distinct phrases in a stream, each as likely as any other, however often and wherever it comes.

    Kept are those with the smallest hashes. Unlike a reservoir, this needs no memory of what came before to keep each
    phrase once, does not depend on the table's order, and a smaller sample is the beginning of a larger one.

    Args:
        count: how many to keep.
        seed: equal seeds and phrases give equal samples.
    """

    def __init__(self, count: int, seed: int) -> None:
        self._count = count
        self._key = b"%d" % seed
        self._kept: list[tuple[int, tuple[bytes, ...]]] = []  # hashes negated: the worst one is on top of the heap
        self._members: set[tuple[bytes, ...]] = set()

    def add(self, *item: bytes) -> None:
        """Let a phrase, or several that belong together, in."""
        digest = hashlib.blake2b(b"\n".join(item), digest_size=DIGEST_BYTES, key=self._key).digest()
        entry = -int.from_bytes(digest, "big"), item
        if item in self._members or (len(self._kept) == self._count and entry < self._kept[0]):
            return
        self._members.add(item)
        heapq.heappush(self._kept, entry)
        if len(self._kept) > self._count:
            self._members.remove(heapq.heappop(self._kept)[1])

    def items(self) -> list[tuple[bytes, ...]]:
        """What was kept, by hash."""
        return [item for _, item in sorted(self._kept, reverse=True)]


def read_for_network(table: str, reading: Reading, advanced: Advanced = show_nothing) -> Iterator[TableLines]:
    """The blocks of a table, as they come.

    Raises:
        InputError: there is none, or its phrases are not of the form that the network learned from.
    """
    name, form, meter = find_input(table), reading.form, Meter()
    if name != STANDARD_STREAM:  # which cannot be read twice
        _, form = read_first_line(name, form if form.is_factored else None)
    reading.check_form(name, form)
    for block in parse_blocks(read_blocks(name, meter=meter), name, form=form):
        yield block
        advanced(meter.lines_read, meter.share)


def sample_table(
    model: Model,
    table: str,
    count: int,
    seed: int,
    *,
    whole: bool = False,
    min_words: int = 1,
    advanced: Advanced = show_nothing,
) -> list[Pair]:
    """A sample of a table's distinct phrases that a network reads, or of `whole` pairs, of so many words or more."""
    reading, sample = Reading(model), PhraseSample(count, seed)
    for block in read_for_network(table, reading, advanced):
        read, written = block.pairs().sides(inverse=reading.inverse)
        items: Iterable[tuple[bytes, ...]] = zip(read, written, strict=True) if whole else zip(dict.fromkeys(read))
        for item in items:
            if len(words(item[0])) >= min_words and all(map(words, item)):
                sample.add(*item)
    if not (drawn := sample.items()):
        raise InputError(f"{table}: expected phrases of {min_words} or more words, found none")
    return [Pair(*item) for item in drawn]
