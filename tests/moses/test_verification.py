import math

import pytest

from moses_rnn.errors import InputError
from moses_rnn.formats.phrase_forms import words
from moses_rnn.formats.phrase_table import parse_table
from moses_rnn.moses.comparison import compare
from moses_rnn.moses.verification import choose_lines

LINES = [b"a ||| b ||| 0.5 0.25\n", b"a ||| c ||| 1 1e-50\n", b"x  y ||| z ||| 1e-38 0.5\n"]
RIGHT = [
    ((b"a", b"b"), (math.log(0.5), math.log(0.25))),
    ((b"a", b"c"), (0.0, -100.0)),
    ((b"x y", b"z"), (math.log(1e-38), math.log(0.5))),
]


def compared(seen, lines=LINES, tolerance=1e-4):
    table = [((b" ".join(words(line.source)), line.target), words(line.scores)) for line in parse_table(lines, "t")]
    return compare("text", table, seen, tolerance)


def test_all_as_it_should_be():
    found = compared(RIGHT)
    assert found.is_good
    assert (found.pairs, found.values, found.below, found.missing) == (3, 6, 2, [])
    assert found.largest < 1e-12
    assert list(found.summary()) == [
        f"text     ok: 3 pairs, 6 values, max |Δ| {found.largest:.2g}; 2 at or below -87 (there {found.largest_below:.2g})"
    ]


WRONG = {
    "another value": (((b"a", b"b"), (math.log(0.5), math.log(0.26))), ["expected -0.693147 -1.38629, seen -0.693147 -1.34707"]),
    "a value less": (((b"a", b"b"), (math.log(0.5),)), ["seen otherwise, first: a ||| b"]),
    "no floor": (((b"a", b"c"), (0.0, -90.0)), ["seen otherwise, first: a ||| c"]),
    "not a number": (((b"a", b"b"), (math.log(0.5), math.nan)), ["seen otherwise"]),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said(case):
    (pair, values), said = case
    found = compared([(pair, values) if known == pair else (known, right) for known, right in RIGHT])
    assert not found.is_good
    text = "\n".join(found.summary())
    assert text.startswith("text     WRONG")
    assert all(part in text for part in said)


def test_a_pair_that_the_decoder_lost():
    found = compared(RIGHT[1:])
    assert not found.is_good
    assert found.missing == [(b"a", b"b")]
    assert "1 pairs not found by the decoder, first: a ||| b" in "\n".join(found.summary())


def test_nothing_seen_is_not_good():
    assert not compared([]).is_good
    assert not compared([], lines=[]).is_good


def test_lines_of_one_pair_may_differ():
    lines = [b"a ||| b ||| 0.5\n", b"a ||| b ||| 0.25\n"]
    pair = (b"a", b"b")
    assert compared([(pair, (math.log(0.25),)), (pair, (math.log(0.5),))], lines).is_good
    assert not compared([(pair, (math.log(0.3),))], lines).is_good


def test_a_table_that_nothing_can_be_asked_of(tmp_path):
    (tmp_path / "t").write_bytes(b"a ||| ||| 0.5\n ||| b ||| 0.5\n")
    with pytest.raises(InputError, match="expected a line with words on both sides, found none"):
        choose_lines(str(tmp_path / "t"), 20, seed=1)


def test_the_sample_has_all_lines_of_its_sources_and_some_low_scores(tmp_path):
    lines = [b"s%03d ||| t%d ||| 0.5\n" % (i, j) for i in range(300) for j in range(3)]
    lines[601] = lines[601].replace(b"0.5", b"1e-40")
    (tmp_path / "t").write_bytes(b"".join(lines))
    chosen = choose_lines(str(tmp_path / "t"), 20, seed=3)
    sources = {line.source for line in chosen}
    assert b"s200" in sources
    assert 15 <= len(sources) <= 21
    assert len(chosen) == 3 * len(sources)
    assert [line.number for line in chosen] == sorted(line.number for line in chosen)
    assert chosen == choose_lines(str(tmp_path / "t"), 20, seed=3)
    assert chosen != choose_lines(str(tmp_path / "t"), 20, seed=4)
