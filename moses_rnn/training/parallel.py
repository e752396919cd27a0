"""Line-parallel texts as training material: the pairs of their lines, as often as they occur."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path

from moses_rnn.errors import InputError, Stopped
from moses_rnn.files.metered import Meter
from moses_rnn.files.streams import STANDARD_STREAM, existing_input, read_blocks
from moses_rnn.training.corpus import Corpus

Pair = tuple[bytes, bytes]
LINES_AT_ONCE = 1 << 14  # between two looks at whether to stop
COMPRESSIONS = "", ".gz"


@dataclass(frozen=True)
class ParallelTexts:
    """Two files whose lines are translations of each other."""

    source: str
    target: str

    @classmethod
    def of_prefix(cls, prefix: str, source: str, target: str) -> ParallelTexts:
        """PREFIX.SOURCE and PREFIX.TARGET, plain or compressed.

        Raises:
            InputError: one of them does not exist.
        """
        return cls(*(existing_text(f"{prefix}.{ending}") for ending in (source, target)))

    def check_lengths(self) -> int:
        """How many lines both have.

        Raises:
            InputError: one has more than the other.
        """
        source, target = (count_lines(path) for path in (self.source, self.target))
        if source != target:
            raise InputError(
                f"{self.source}, {self.target}: expected as many lines in both, found {source:,} and {target:,}",
                advice="Line N of one is the translation of line N of the other.",
            )
        return source

    def pairs(self, observe: Callable[[int, float | None], None], should_stop: Callable[[], bool]) -> Iterator[Pair]:
        """The pairs, line by line, without line ends.

        Args:
            observe: is told how many lines were read, and what share of them.
            should_stop: asked now and then.

        Raises:
            InputError: one file has more lines than the other.
            Stopped: `should_stop` was true.
        """
        meter = Meter()
        both = zip_longest(_lines(self.source, meter), _lines(self.target, Meter()))
        while together := list(islice(both, LINES_AT_ONCE)):
            for source, target in together:
                if source is None or target is None:
                    self.check_lengths()
                    raise InputError(f"{self.source}, {self.target}: changed while they were read")
                yield source, target
            observe(meter.lines_read, meter.share)
            if should_stop():
                raise Stopped(f"stopped while reading {self.source}; run the same command again to start")


def existing_text(path: str) -> str:
    """A file that is read more than once, plain or compressed.

    Raises:
        InputError: it does not exist, or is standard input.
    """
    existing = next((path + ending for ending in COMPRESSIONS if Path(path + ending).exists()), path)
    if path == STANDARD_STREAM:
        raise InputError("texts to train on must be files: a stopped run reads them again")
    return existing_input(existing)


def _lines(path: str, meter: Meter) -> Iterator[bytes]:
    for block in read_blocks(path, meter=meter):
        yield from (line.rstrip(b"\r") for line in block.removesuffix(b"\n").split(b"\n"))


def count_lines(path: str) -> int:
    """The lines of a file."""
    return sum(block.count(b"\n") + (not block.endswith(b"\n")) for block in read_blocks(path))


def turned(pairs: Iterable[Pair], *, inverse: bool) -> Iterable[Pair]:
    """The pairs as a network takes them: what it reads, then what it writes."""
    return ((target, source) for source, target in pairs) if inverse else pairs


def describe_sentences(corpus: Corpus, *, dev: bool) -> list[str]:
    """What the texts hold, in lines for a log."""
    n = corpus.statistics
    kept = "a text of its own" if dev else "chosen by source sentence"
    return [
        f"texts: {n.pairs:,} pairs, {n.distinct_pairs:,} distinct; each is learned as often as it occurs",
        f"left out: {n.too_long:,} pairs longer than max_length, {n.empty:,} with an empty side",
        f"read: {len(corpus.source_vocabulary) - 2:,} of {n.source_words:,} words, "
        f"{n.source_coverage:.2%} of running words",
        f"written: {len(corpus.target_vocabulary) - 2:,} of {n.target_words:,} words, "
        f"{n.target_coverage:.2%} of running words",
        f"training pairs: {n.training_pairs:,}; held out: {n.held_out_pairs:,}, {kept}",
        f"unigram baseline: {corpus.unigram_nats_per_token:.4f} held-out nats per target token",
    ]
