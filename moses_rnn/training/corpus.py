"""The distinct phrase pairs of a table as arrays of ids on disk, split into training and held-out pairs.

Words never live as Python objects all at once: they stream into memory-mapped files, and everything that needs the
whole table (counting, finding equal pairs, splitting) is done on 64-bit hashes in numpy, some tens of bytes a pair. Two
different pairs share a hash with a probability below n²/2⁶⁵ (3·10⁻⁴ for 10⁸ pairs); such a pair would be left out.
"""

from __future__ import annotations

import functools
import hashlib
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from moses_rnn.errors import InputError, writing
from moses_rnn.formats.phrase_forms import words
from moses_rnn.models.batches import Lengths
from moses_rnn.models.vocabulary import END_ID, Ids, Vocabulary, coverage, shortlist

Hashes = npt.NDArray[np.uint64]
Positions = npt.NDArray[np.int64]
PAIRS_AT_ONCE = 1 << 16
MAX_HELD_OUT_SHARE = 0.1


@dataclass(frozen=True)
class CorpusConfig:
    """What is made of a table.

    `source_words` and `target_words` are shortlist sizes; `held_out_pairs` about how many pairs the held-out split has
    (at most a tenth); `max_length` leaves out pairs with a longer side (0: none); `seed` chooses the held-out sources.
    """

    source_words: int = 15_000
    target_words: int = 15_000
    held_out_pairs: int = 5_000
    max_length: int = 0
    seed: int = 1


@dataclass(frozen=True)
class CorpusStatistics:
    """What a reader of a training log wants to know about the table."""

    pairs: int  # lines read
    too_long: int  # left out: a side longer than max_length
    empty: int  # left out: a side without words
    distinct_pairs: int  # as strings
    collapsed_pairs: int  # of these, equal to another one after mapping to ids, so trained once
    training_pairs: int
    held_out_pairs: int
    source_words: int  # distinct words seen
    target_words: int
    source_coverage: float  # share of running words, counted over distinct phrases, that the shortlist knows
    target_coverage: float


@dataclass(frozen=True)
class Phrases:
    """One side of all pairs: ids laid end to end; phrase i is ``tokens[ends[i]:ends[i + 1]]``."""

    tokens: Ids
    ends: Positions

    def take(self, rows: Positions) -> tuple[Ids, Lengths]:
        """Chosen phrases laid end to end, and their lengths."""
        lengths = self.ends[rows + 1] - self.ends[rows]
        shift = self.ends[rows] - (np.cumsum(lengths) - lengths)
        return self.tokens[np.repeat(shift, lengths) + np.arange(int(lengths.sum()))], lengths

    def hashes(self) -> Hashes:
        """A 64-bit hash of every phrase."""
        parts = [self._hash_block(first, last) for first, last in _ranges(len(self.ends) - 1)]
        return np.concatenate(parts) if parts else np.zeros(0, np.uint64)

    def _hash_block(self, first: int, last: int) -> Hashes:
        ends = self.ends[first : last + 1]
        tokens = self.tokens[ends[0] : ends[-1]].astype(np.uint64)
        lengths = np.diff(ends)
        position = np.arange(len(tokens)) - np.repeat(ends[:-1] - ends[0], lengths)
        mixed = _mix(tokens * np.uint64(0x9E3779B97F4A7C15) + position.astype(np.uint64))
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])
        relative = ends - ends[0]
        return _mix(sums[relative[1:]] - sums[relative[:-1]] + lengths.astype(np.uint64))

    def count(self, chosen: npt.NDArray[np.bool_], size: int) -> Lengths:
        """How often each id below `size` occurs in the chosen phrases."""
        counts = np.zeros(size, np.int64)
        for first, last in _ranges(len(self.ends) - 1):
            ends = self.ends[first : last + 1]
            keep = np.repeat(chosen[first:last], np.diff(ends))
            counts += np.bincount(self.tokens[ends[0] : ends[-1]][keep], minlength=size)
        return counts

    def renumber(self, new_ids: Ids) -> None:
        """Replace every id, in place."""
        for first, last in _ranges(len(self.tokens)):
            self.tokens[first:last] = new_ids[self.tokens[first:last]]


@dataclass(frozen=True)
class Corpus:
    """Training material: both sides as ids, and which pairs are trained on and which are held out."""

    source: Phrases
    target: Phrases
    training: Positions
    held_out: Positions
    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary
    statistics: CorpusStatistics
    digest: str  # equal for equal material

    @functools.cached_property
    def unigram_nats_per_token(self) -> float:
        """Held-out cost of a unigram model of the training targets (end symbols included, add-one), in nats."""
        log_p = np.log(self.unigram_model())
        held_out = self._target_counts(self.held_out, len(log_p))
        return float(-(held_out * log_p).sum() / held_out.sum())

    def unigram_model(self) -> npt.NDArray[np.float64]:
        """How likely each target word is among the training pairs, end symbols included, add-one."""
        size = len(self.target_vocabulary)
        counts = self._target_counts(self.training, size)
        likely: npt.NDArray[np.float64] = (counts + 1) / (counts.sum() + size)
        return likely

    def _target_counts(self, rows: Positions, size: int) -> Lengths:
        chosen = np.zeros(len(self.target.ends) - 1, np.bool_)
        chosen[rows] = True
        counts = self.target.count(chosen, size)
        counts[END_ID] += len(rows)
        return counts


def build_corpus(
    pairs: Iterable[tuple[bytes, bytes]],
    folder: Path,
    config: CorpusConfig,
    word_counts: tuple[Mapping[bytes, int] | None, Mapping[bytes, int] | None] = (None, None),
) -> Corpus:
    """Read phrase pairs into arrays, choose shortlists, merge equal pairs, split off held-out sources.

    Args:
        pairs: source and target phrases.
        folder: for the arrays' files, which are replaced.
        config: sizes, split, seed.
        word_counts: counts to choose the shortlists by, for each side; by default over the distinct phrases.

    Raises:
        InputError: fewer than two distinct pairs or sources remain.
    """
    folder.mkdir(parents=True, exist_ok=True)
    reader = _Reader(folder, config.max_length)
    reader.read(pairs)
    source, target = reader.phrases()
    distinct = _count_distinct(_pair_hashes(source.hashes(), target.hashes()))
    sizes = config.source_words, config.target_words
    sides = zip((source, target), reader.word_ids, word_counts, sizes, strict=True)
    (source_vocabulary, source_coverage), (target_vocabulary, target_coverage) = [
        _renumber_by_shortlist(*side) for side in sides
    ]
    source_hashes = source.hashes()
    pair_hashes = _pair_hashes(source_hashes, target.hashes())
    first_of_each = np.sort(np.unique(pair_hashes, return_index=True)[1])
    training, held_out = _split(first_of_each, source_hashes[first_of_each], config)
    statistics = CorpusStatistics(
        pairs=reader.pairs,
        too_long=reader.too_long,
        empty=reader.empty,
        distinct_pairs=distinct,
        collapsed_pairs=distinct - len(first_of_each),
        training_pairs=len(training),
        held_out_pairs=len(held_out),
        source_words=len(reader.word_ids[0]),
        target_words=len(reader.word_ids[1]),
        source_coverage=source_coverage,
        target_coverage=target_coverage,
    )
    digest = hashlib.sha256()
    for part in (pair_hashes.data, training.data, source_vocabulary.to_bytes(), target_vocabulary.to_bytes()):
        digest.update(part)
    return Corpus(
        source, target, training, held_out, source_vocabulary, target_vocabulary, statistics, digest.hexdigest()
    )


def _renumber_by_shortlist(
    phrases: Phrases, word_ids: dict[bytes, int], counts: Mapping[bytes, int] | None, size: int
) -> tuple[Vocabulary, float]:
    """Choose a side's shortlist and renumber its ids by it; returns it and the share of running words it knows."""
    if counts is None:
        counts = _distinct_phrase_counts(phrases, word_ids)
    vocabulary = shortlist(counts, size)
    phrases.renumber(np.array(vocabulary.ids(word_ids), dtype=np.int32))
    return vocabulary, coverage(counts, vocabulary)


class _Reader:
    """Streams phrase pairs into files of provisional ids, in the order in which words are first seen."""

    def __init__(self, folder: Path, max_length: int) -> None:
        self.word_ids: tuple[dict[bytes, int], dict[bytes, int]] = ({}, {})
        self.pairs = self.too_long = self.empty = 0
        self._paths = [(folder / f"{side}.tokens", folder / f"{side}.lengths") for side in ("source", "target")]
        self._max_length = max_length or None

    def read(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        for tokens_path, lengths_path in self._paths:
            for path in (tokens_path, lengths_path):
                path.unlink(missing_ok=True)  # perhaps a link to something else
                path.touch(exist_ok=False)
        buffers = [(array("i"), array("i")) for _ in self._paths]
        for source, target in pairs:
            self.pairs += 1
            self._append(words(source), words(target), buffers)
            if len(buffers[0][1]) >= PAIRS_AT_ONCE:
                self._flush(buffers)
        self._flush(buffers)

    def _append(self, source: list[bytes], target: list[bytes], buffers: list[tuple[array[int], array[int]]]) -> None:
        if not source or not target:
            self.empty += 1
            return
        if self._max_length and max(len(source), len(target)) > self._max_length:
            self.too_long += 1
            return
        for phrase, known, (tokens, lengths) in zip((source, target), self.word_ids, buffers, strict=True):
            tokens.extend([known.setdefault(word, len(known)) for word in phrase])
            lengths.append(len(phrase))

    def _flush(self, buffers: list[tuple[array[int], array[int]]]) -> None:
        for paths, buffer in zip(self._paths, buffers, strict=True):
            for path, values in zip(paths, buffer, strict=True):
                with writing(path), path.open("ab") as file:
                    values.tofile(file)
                    file.flush()
                del values[:]

    def phrases(self) -> list[Phrases]:
        sides = []
        for tokens_path, lengths_path in self._paths:
            if not lengths_path.stat().st_size:
                raise InputError(f"expected phrase pairs to train on, found none in {self.pairs} lines")
            lengths = np.fromfile(lengths_path, dtype=np.int32)
            ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
            sides.append(Phrases(np.memmap(tokens_path, dtype=np.int32, mode="r+"), ends))
        return sides


def _distinct_phrase_counts(phrases: Phrases, known: dict[bytes, int]) -> dict[bytes, int]:
    """Occurrences of each word over the distinct phrases of one side."""
    first = np.zeros(len(phrases.ends) - 1, np.bool_)
    first[np.unique(phrases.hashes(), return_index=True)[1]] = True
    return dict(zip(known, phrases.count(first, len(known)).tolist(), strict=True))


def _split(pairs: Positions, source_hashes: Hashes, config: CorpusConfig) -> tuple[Positions, Positions]:
    """Hold out whole sources: no source phrase (as ids) is on both sides of the split.

    A source with more than a twentieth of the wanted pairs (unknown words only, say) is always trained on.
    """
    distinct, source_of, sizes = np.unique(source_hashes, return_inverse=True, return_counts=True)
    if len(distinct) == 1:
        raise InputError("expected at least two source phrases to train on one and hold out the other, found one")
    wanted = min(config.held_out_pairs, MAX_HELD_OUT_SHARE * len(pairs))
    seeded = _mix(distinct + np.uint64(config.seed))
    chosen = (seeded < np.uint64(int(wanted / len(pairs) * 2.0**64))) & (sizes <= max(wanted / 20, 1))
    if not chosen.any():  # few sources: the smallest one
        chosen[np.lexsort((seeded, sizes))[0]] = True
    held_out = chosen[source_of]
    return pairs[~held_out], pairs[held_out]


def _count_distinct(hashes: Hashes) -> int:
    ordered = np.sort(hashes)  # np.unique alone takes ninety times as long
    return 1 + int(np.count_nonzero(ordered[1:] != ordered[:-1]))


def _pair_hashes(source: Hashes, target: Hashes) -> Hashes:
    return _mix(source * np.uint64(3) + target)


def _mix(values: Hashes) -> Hashes:
    """The finaliser of splitmix64: every input bit changes every output bit with probability one half."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _ranges(total: int, step: int = 1 << 20) -> Iterator[tuple[int, int]]:
    for first in range(0, total, step):
        yield first, min(first + step, total)
