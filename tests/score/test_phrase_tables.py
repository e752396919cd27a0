"""Lines with further scores: how they are chunked, scored, written and counted."""

import math

import numpy as np
import pytest

from moses_rnn.errors import FormatError, MosesRnnError
from moses_rnn.models.phrases import check_scores
from moses_rnn.score.workers import ChunkScorer, ThreadWorkers, map_in_order
from moses_rnn.table.phrase_table import DEFAULT_FLOOR
from moses_rnn.table.signatures import TableCounts
from moses_rnn.table.table_blocks import TOO_MANY_WORDS, chunks_between_sources, of_bounded_length, parse_blocks

pytestmark = pytest.mark.usefixtures("either_path")

LINES = [b"s%d ||| t%d ||| 0.5 1 ||| 0-0 ||| 1 1 1 ||| |||\n" % (i // 3, i) for i in range(50)]


class Length:
    name, meaning = "Length", "minus the lengths"
    unbounded = False

    def log_probs(self, pairs, tally=None):
        return -np.array([len(s) + len(t) for s, t in zip(pairs.sources, pairs.targets, strict=True)], np.float64)


class Fixed(Length):
    def __init__(self, *values):
        self.values = values

    def log_probs(self, pairs, tally=None):
        scores = np.array([self.values[int(target[1:])] for target in pairs.targets])
        check_scores(self, scores, pairs)
        return scores


def scored(lines, *scorers, workers=1, floor=DEFAULT_FLOOR, size=8192):
    counts, blocks = TableCounts(), []
    chunks = of_bounded_length(chunks_between_sources(parse_blocks([b"".join(lines)], "t"), size), "t")
    with ThreadWorkers([ChunkScorer(scorers, "t", "new", floor)] * workers) as threads:
        for _, (block, more) in map_in_order(chunks, threads):
            counts.add(more)
            blocks.append(block)
    return b"".join(blocks).splitlines(keepends=True), counts


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("size", [1, 4, 8192])
def test_lines_stay_in_order_whatever_the_chunks_and_workers(workers, size):
    lines, report = scored(LINES, Length(), workers=workers, size=size)
    assert lines == scored(LINES, Length())[0]
    assert [line.split(b" ")[6] for line in lines] == [
        b"%.9g" % math.exp(-len(b"s%dt%d" % (i // 3, i))) for i in range(50)
    ]
    assert [b" ".join(line.split(b" ")[:6] + line.split(b" ")[7:]) for line in lines] == LINES
    assert report.lines == 50


def test_chunks_are_cut_between_sources():
    for size in (1, 3, 4, 7, 50):  # lines that come at once
        table = parse_blocks([b"".join(LINES[i : i + size]) for i in range(0, 50, size)], "t")
        chunks = list(chunks_between_sources(table, 4))
        assert [len(chunk) for chunk in chunks] == [6] * 8 + [2]  # two sources of three lines each
        assert b"".join(chunk.text for chunk in chunks) == b"".join(LINES)
    assert list(chunks_between_sources([])) == []  # everything was scored before an interruption
    one_source = list(parse_blocks([b"a ||| b ||| 1\n"] * 20, "t"))
    assert [len(chunk) for chunk in chunks_between_sources(one_source, 4)] == [8, 8, 4]


@pytest.mark.parametrize(
    ("log_prob", "floor", "written"),
    [
        (0.0, DEFAULT_FLOOR, b"1"),
        (1e-7, DEFAULT_FLOOR, b"1"),  # rounding above 0
        (-1.5, DEFAULT_FLOOR, b"%.9g" % math.exp(-1.5)),
        (-87.0, DEFAULT_FLOOR, b"1.64581143e-38"),  # exp(-87), above float32's least normal number 1.17549435e-38
        (-500.0, DEFAULT_FLOOR, b"1.64581143e-38"),
        (-500.0, -100.0, b"%.9g" % math.exp(-100)),
    ],
)
def test_numbers_as_written(log_prob, floor, written):
    (line,), _ = scored([b"a ||| t0 ||| 1\n"], Fixed(log_prob), floor=floor)
    assert line == b"a ||| t0 ||| 1 " + written + b"\n"


class Unbounded(Fixed):
    unbounded = True


@pytest.mark.parametrize(
    ("score", "floor", "written"),
    [
        (3.5, DEFAULT_FLOOR, b"%.9g" % math.exp(3.5)),
        (87.0, DEFAULT_FLOOR, b"6.07603023e+37"),  # exp(87), below float32's largest number 3.4e38
        (500.0, DEFAULT_FLOOR, b"6.07603023e+37"),
        (-500.0, DEFAULT_FLOOR, b"1.64581143e-38"),
    ],
)
def test_a_score_that_is_no_log_probability_may_be_above_zero(score, floor, written):
    (line,), report = scored([b"a ||| t0 ||| 1\n"], Unbounded(score), Fixed(-1), floor=floor)
    assert line.split()[-2] == written
    assert report.highest[0] == min(score, 87) or score < 0
    with pytest.raises(MosesRnnError, match=r"t:1: \w+: expected a log-probability, found 0\.5 for"):
        scored([b"a ||| t0 ||| 1\n"], Unbounded(score), Fixed(0.5), floor=floor)


@pytest.mark.parametrize("size", [1, 8192])
def test_floors_are_counted(size):
    lines = [b"s%d ||| t%d ||| 1\n" % (i, i) for i in range(3)]
    _, report = scored(lines, Fixed(-1, -90, -100), Fixed(-2, -2, -2), size=size)
    assert (report.lines, report.floored, report.lowest, report.highest) == (3, [2, 0], [-87, -2], [-1, -2])


UNUSABLE = [(Fixed, bad) for bad in (math.nan, math.inf, -math.inf, 0.1)]
UNUSABLE += [(Unbounded, bad) for bad in (math.nan, math.inf, -math.inf)]


@pytest.mark.parametrize(("kind", "bad"), UNUSABLE)
def test_a_number_that_is_no_score_stops_the_run(kind, bad):
    lines = [b"a ||| t%d ||| 1\n" % i for i in range(3)]
    expected = "a finite number" if kind.unbounded else "a log-probability"
    with pytest.raises(
        MosesRnnError, match=rf"t:2: \w+: expected {expected}, found {bad} for 'a \|\|\| t1'\n.*damaged"
    ):
        scored(lines, kind(-1, bad, -1))


class Poisoned(Length):
    """Fails at a phrase, or only where there are several."""

    def __init__(self, poison, harmless_alone=False):
        self.poison, self.harmless_alone = poison, harmless_alone

    def log_probs(self, pairs, tally=None):
        is_poisoned = (b"s0", self.poison) in zip(pairs.sources, pairs.targets, strict=True)
        if is_poisoned and not (self.harmless_alone and len(pairs) == 1):
            raise ZeroDivisionError("poison")
        return super().log_probs(pairs)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("number", [1, 7, 20])
def test_a_chunk_that_cannot_be_scored_names_its_lines_and_the_one_at_fault(workers, number):
    lines = [b"s0 ||| t%d ||| 1\n" % i for i in range(1, 21)]
    message = (
        r"t:1: expected to score lines 1 to 20, found ZeroDivisionError: poison\n"
        rf"  Line {number} fails \(even on its own\): 's0 \|\|\| t{number}'"
    )
    with pytest.raises(MosesRnnError, match=message):
        scored(lines, Poisoned(b"t%d" % number), workers=workers)
    with pytest.raises(MosesRnnError, match=r"Line \d+ fails \(only together with the others\)"):
        scored(lines, Poisoned(b"t%d" % number, harmless_alone=True), workers=workers)


def test_chunks_hold_a_bounded_number_of_bytes():
    lines = parse_blocks([b"%s ||| b ||| 1\n" % (b"a" * 990)] * 100, "t")
    assert [len(chunk) for chunk in chunks_between_sources(lines, most_bytes=9_999)] == [10] * 10


def test_phrases_too_long_to_be_stepped_through_are_refused():
    fits = b"b " * (TOO_MANY_WORDS - 1)
    assert len(scored([b"a ||| " + fits + b"||| 1\n"], Length())[0]) == 1
    with pytest.raises(FormatError, match="t:2: expected phrases of fewer than 65,536 words, found 65,536"):
        scored([b"a ||| b ||| 1\n", b"a ||| " + fits + b"b ||| 1\n"], Length())
