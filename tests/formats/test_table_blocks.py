import gzip
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_rnn.errors import FormatError
from moses_rnn.formats.census import Census
from moses_rnn.formats.phrase_table import parse_table
from moses_rnn.formats.table_blocks import TableLines, parse_blocks
from tests.formats.line_cases import ACCEPTED, REFUSED

pytestmark = pytest.mark.usefixtures("either_path")

REGULAR = b"a b ||| c d ||| 0.5 1 ||| 0-0 1-1 ||| 1 1 1 ||| |||\n"


def parsed(blocks, rejected=None):
    return TableLines.joined(list(parse_blocks(blocks, "t", rejected)))


def assert_same_line_by_line(lines, sizes=(1, 2, 1000)):
    rejected, rejected_again = [], []
    table = list(parse_table(lines, "t", lambda line, error: rejected.append((line, str(error)))))
    census = Census("t")
    census.look(table)
    for size in sizes:
        rejected_again.clear()
        blocks = [b"".join(lines[i : i + size]) for i in range(0, len(lines), size)]
        parts = list(parse_blocks(blocks, "t", lambda line, error: rejected_again.append((line, str(error)))))
        assert rejected_again == rejected
        if not table:
            assert parts == []
            continue
        block = TableLines.joined(parts)
        assert block.text == b"".join(line.line for line in table)
        assert block.numbers.tolist() == [line.number for line in table]
        assert list(block.pairs()) == [(line.source, line.target) for line in table]
        added = [b" %d" % i for i in range(len(table))]
        assert block.with_scores(added) == b"".join(
            line.with_scores(score[1:]) for line, score in zip(table, added, strict=True)
        )
        again = Census("t")
        again.look(block.irregular)
        assert again.as_note() == census.as_note()
        for first, last in [(0, 1), (1, len(table)), (len(table) // 2, len(table)), (1, 1)]:
            part = block[first:last]
            assert (part.text, list(part.pairs()), part.irregular) == (
                b"".join(line.line for line in table[first:last]),
                [(line.source, line.target) for line in table[first:last]],
                tuple(line for line in block.irregular if line.number in part.numbers),
            )


@pytest.mark.parametrize("line", [case[0] for case in (*ACCEPTED.values(), *REFUSED.values())])
@pytest.mark.parametrize("columns", [1, 2, 4, 20])
def test_lines_of_every_kind_among_regular_ones(line, columns):
    regular = b"a b ||| c d ||| 0.5" + b" 1" * (columns - 1) + b" ||| 0-0\n"
    line = line if line.endswith(b"\n") else line + b"\n"
    for lines in ([regular, line, regular], [line] * 2 + [regular], [regular] * 2 + [line[:-1] or line]):
        assert_same_line_by_line(lines)


PIECES = [
    " ||| ",
    "|||",
    "|",
    " ",
    "\t",
    "\n",
    "\r\n",
    "a",
    "b c",
    "é",
    "]",
    "[x]",
    "0.5",
    "1 0.25",
    "1e-5",
    "0",
    "-1",
    "\0",
    "||| 0-0\n",
]


@given(st.lists(st.sampled_from([*PIECES, "a ||| b ||| 0.5 1", "c ||| d ||| 1 1 ||| 0-0\n"]), max_size=25))
def test_any_text_is_read_as_line_by_line(pieces):
    text = REGULAR + "".join(pieces).encode()
    assert_same_line_by_line([line + b"\n" for line in text.split(b"\n")[:-1]] + [b"a ||| b ||| 1 1"])


@given(st.lists(st.tuples(st.integers(0, 200), st.binary(max_size=3)), max_size=4))
def test_changed_bytes_are_noticed_as_line_by_line(changes):
    text = bytearray(REGULAR * 5)
    for at, new in changes:
        text[at : at + len(new)] = new
    assert_same_line_by_line(bytes(text).splitlines(keepends=True) if b"\r" not in text else [REGULAR])


CHARACTERS = ["é", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff"]
NO_CHARACTERS = [b"\x80", b"\xc0\x80", b"\xc1\xbf", b"\xe0\x9f\xbf", b"\xed\xa0\x80", b"\xf0\x8f\xbf\xbf", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xff", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98"]  # fmt: skip


@pytest.mark.parametrize("bad", NO_CHARACTERS)
def test_what_is_no_utf8_is_noticed_as_line_by_line(bad):
    good = [REGULAR, *(b"%b ||| b ||| 0.5 1\n" % character.encode() for character in CHARACTERS)]
    assert_same_line_by_line([*good, b"%b ||| b ||| 0.5 1\n" % bad, *good])
    assert_same_line_by_line([*good, b"a ||| b ||| 0.5 1 ||| " + bad])


def test_a_bad_line_is_an_error_after_the_lines_before_it():
    lines = [REGULAR] * 3 + [b"a ||| b ||| 1\n"] + [REGULAR]
    blocks = parse_blocks([b"".join(lines)], "t")
    assert next(blocks).text == REGULAR * 3
    with pytest.raises(FormatError, match="t:4: expected 2 scores as on line 1, found 1"):
        next(blocks)


def test_regular_lines_are_no_python_objects():
    (block,) = parse_blocks([REGULAR * 100], "t")
    assert [line.number for line in block.irregular] == [1]  # which tells how many scores there are


def test_pairs_of_either_direction():
    block = parsed([b"a ||| b ||| 1\n"])
    assert list(block.pairs()) == [(b"a", b"b")]
    assert list(block.pairs(inverse=True)) == [(b"b", b"a")]


def test_lines_after_a_number():
    errors = []
    block = parsed([REGULAR * 3, b"\n" + REGULAR * 2], lambda *error: errors.append(error))
    assert [len(block.after(number)) for number in range(7)] == [5, 4, 3, 2, 2, 1, 0]
    assert len(errors) == 1


def test_the_real_table_is_regular(multi30k):
    with gzip.open(multi30k / "phrase-table.gz") as file:
        lines = list(itertools.islice(file, 5000))
    assert_same_line_by_line(lines, sizes=(1000, 5000))
    (block,) = parse_blocks([b"".join(lines)], "t")
    assert len(block.irregular) < 50


def test_empty_blocks_are_nothing():
    assert list(parse_blocks([b""], "t")) == []
    assert [block.text for block in parse_blocks([b"", REGULAR, b""], "t")] == [REGULAR]
