"""Links between words: read, checked against their sentences, and which of several counts."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from moses_rnn.errors import FormatError
from moses_rnn.moses.alignments import check_links, format_links, nearest, parse_links, read_links, transposed

LINKS = some.lists(some.tuples(some.integers(0, 12), some.integers(0, 12)), max_size=20).map(tuple)


@given(LINKS)
def test_what_is_written_is_read(links):
    assert parse_links(format_links(links)) == links
    assert transposed(transposed(links)) == links


def test_lines_are_read_one_by_one():
    lines = [b"0-0 2-1\n", b"\n", b" 3-0\t1-12 \r\n"]
    assert list(read_links(lines, "a")) == [((0, 0), (2, 1)), (), ((3, 0), (1, 12))]


@pytest.mark.parametrize("word", [b"0", b"0-", b"-1-2", b"0-0-0", b"0?1", b"1=1", b"0-1234567890", b"a-b"])
def test_a_line_that_is_none_is_named(word):
    with pytest.raises(FormatError) as caught:
        list(read_links([b"0-0\n", b"1-1 " + word + b"\n"], "links"))
    assert str(caught.value) == f"links:2: expected links such as 0-0 2-1, found '{word.decode()}'"


@pytest.mark.parametrize("link", [(3, 0), (0, 2), (9, 9)])
def test_links_of_other_words_are_refused(link):
    with pytest.raises(
        FormatError, match=r"^a:7: expected links between 3 source and 2 target words, counted from 0, found "
    ):
        check_links(((0, 0), link), 3, 2, "a", 7)
    check_links(((2, 1), (0, 0)), 3, 2)


def by_definition(links, i):
    """The page's words: of the links of i the nearest by d = j - i, of two equally near ones the left."""
    mine = [j for j, target in links if target == i]
    distance = min((abs(j - i) for j in mine), default=None)
    return min((j for j in mine if abs(j - i) == distance), default=None)


@given(LINKS)
def test_the_nearest_link_counts_and_of_two_the_left(links):
    assert nearest(links, 13) == [by_definition(links, i) for i in range(13)]
