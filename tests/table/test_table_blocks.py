"""Many lines at once: the native core, the regular expression and the careful parser read and write the same."""

import contextlib
import io
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_rnn.errors import FormatError
from moses_rnn.native import SWITCH
from moses_rnn.table.line_warnings import LineWarnings
from moses_rnn.table.phrase_table import parse_table
from moses_rnn.table.phrases import PLAIN
from moses_rnn.table.table_blocks import (
    COLUMNS,
    PhraseIds,
    TableLines,
    TextPhrases,
    append_scores,
    parse_blocks,
)
from tests.table.line_cases import ACCEPTED, REFUSED, with_scores

REAL = (
    b"! &quot; ||| ! &quot; ||| 0.71 0.61 1 0.75 ||| 0-0 1-1 ||| 7 5 5 ||| |||\n"
    b"deux caf\xc3\xa9s , ||| two caf\xc3\xa9s , ||| 1e-05 2.5e-7 0.000012 0.5 ||| 0-0 1-1 2-2 ||| 1 1 1 ||| |||\n"
    b"le \xe2\x80\x99 ||| the ||| 0.333333 1 12.5 3. ||| 0-0\n"
    b"a ||| b ||| 1 1 1 1\n"
)


def in_python(work, *given):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SWITCH, "0")
        return work(*given)


def parsed(blocks, form):
    """All that is made of blocks: the sound lines, what is rejected; and where nothing may be, what comes before."""
    rejected, before_error = [], []
    sound = list(parse_blocks(blocks, "t", lambda line, error: rejected.append((line, error.line, str(error))), form))
    with contextlib.suppress(FormatError):
        before_error.extend(
            number for part in parse_blocks(blocks, "t", None, form) for number in part.numbers.tolist()
        )
    return sound, rejected, before_error


def assert_read_alike(text, sizes=(1, 3, 1000), form=PLAIN):
    """The three ways make the same of a text."""
    lines = list(io.BytesIO(text))
    rejected = []
    careful = list(parse_table(lines, "t", lambda line, error: rejected.append((line, error.line, str(error))), form))
    first_rejected = rejected[0][1] if rejected else len(lines) + 1
    for size in sizes:
        blocks = [b"".join(lines[i : i + size]) for i in range(0, len(lines), size)]
        parts, *rest = parsed(blocks, form)
        parts_again, *rest_again = in_python(parsed, blocks, form)
        assert rest == rest_again == [rejected, list(range(1, first_rejected))]
        for part, again in zip(parts, parts_again, strict=True):
            assert (part.text, part.odd_lines) == (again.text, again.odd_lines)
            np.testing.assert_array_equal(part.spans, again.spans)
        assert_same_lines(TableLines.joined(parts) if parts else parts, careful)


def assert_same_lines(lines, careful):
    assert len(lines) == len(careful)
    for part in (slice(None), slice(1, None), slice(len(careful) // 2, -1)):
        some, expected = lines[part], careful[part]
        if not expected:
            continue
        assert some.text == b"".join(line.line for line in expected)
        assert some.numbers.tolist() == [line.number for line in expected]
        pairs = some.pairs()
        read = zip(pairs.sources, pairs.targets, pairs.alignments, strict=True)
        given = [(line.source, line.target, line.alignment) for line in expected]
        assert list(read) == [(*some.form.read(*one), one[2]) for one in given]
        odd, odd_among_all = LineWarnings("t"), LineWarnings("t")
        odd.look(some.odd_lines)
        odd_among_all.look(expected)
        assert odd == odd_among_all
        values = np.arange(2.0 * len(expected)).reshape(-1, 2)
        scored = b"".join(with_scores(line, b"%g %g" % (*row,)) for line, row in zip(expected, values, strict=True))
        added = some.text, some.spans, values
        assert append_scores(*added) == in_python(append_scores, *added) == scored


REGULAR = b"a b ||| c d ||| 0.5 1 ||| 0-0 1-1 ||| 1 1 1 ||| |||\n"
CHARACTERS = ["é", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff"]
NO_CHARACTERS = [b"\x80", b"\xc0\x80", b"\xc1\xbf", b"\xe0\x9f\xbf", b"\xed\xa0\x80", b"\xf0\x8f\xbf\xbf", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xff", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98"]  # fmt: skip
PIECES = [b" ||| ", b"|||", b"|", b" ", b"\t", b"\n", b"\r\n", b"a", b"b c", "é".encode(), b"\xff", b"]", b"[x]", b"\0", b" ||| 0-0\n"]  # fmt: skip
NUMBERS = [b"1 0.25", b"9" * 15, b"9" * 16, *b"0.5 1 1e-5 e-39 0 -1 . 0.000000 0.000001 0.0000001".split()]
FIELDS = [b"a ||| b ||| 0.5 1", b"c ||| d ||| 1 1 ||| 0-0\n", b"a ||| b ||| ", b"||| 0-0 | 1-1 |||\n"]


@given(
    st.lists(st.sampled_from([*PIECES, *NUMBERS, *FIELDS]), max_size=25).map(b"".join), st.sampled_from([b"", REGULAR])
)
def test_any_text(text, begin):
    assert_read_alike(begin + text)


@given(st.lists(st.sampled_from([*NUMBERS, b"e", b"-", b"5", b"e-0", b"0."]), max_size=6).map(b"".join))
def test_any_number(number):
    assert_number_read_alike(number)


@pytest.mark.parametrize(
    "number", [b"0.000001", b"0.0000001", b"9" * 15, b"9" * 16, b"1e-39", b"1e-40", b"1e-3", b"7."]
)
def test_numbers_at_the_edges_of_what_is_regular(number):
    assert_number_read_alike(number)


def assert_number_read_alike(number):
    assert_read_alike(b"a ||| b ||| 1\na ||| b ||| %b ||| 0-0\na ||| b ||| %b 1\n" % (number, number))


@pytest.mark.parametrize("columns", [1, 2, 4, 20])
def test_lines_of_every_kind_among_regular_ones(columns):
    regular = b"a b ||| c d ||| 0.5" + b" 1" * (columns - 1) + b" ||| 0-0\n"
    for line, *_ in (*ACCEPTED.values(), *REFUSED.values()):
        whole = line.removesuffix(b"\n") + b"\n"
        for text in (regular + whole + regular, whole * 2 + regular, regular * 2 + line):
            assert_read_alike(text)


@pytest.mark.parametrize("bad", NO_CHARACTERS)
def test_what_is_no_utf8(bad):
    good = REGULAR + b"".join(b"%b ||| b ||| 0.5 1\n" % character.encode() for character in CHARACTERS)
    assert_read_alike(good + b"%b ||| b ||| 0.5 1\n" % bad + good)
    assert_read_alike(good + b"a ||| b ||| 0.5 1 ||| " + bad)


def test_regular_lines_are_no_python_objects():
    for (block,) in (list(parse_blocks([REAL * 100], "t")), in_python(list, parse_blocks([REAL * 100], "t"))):
        assert block.odd_lines == ()


# --- numbers --------------------------------------------------------------------------------------------------------------


def written(values):
    """Numbers as the core writes them, a line for each."""
    text = b"\n" * len(values)
    spans = np.arange(len(values))[:, None] + np.array([0] * (COLUMNS - 1) + [1])
    return append_scores(text, spans, np.reshape(values, (-1, 1)))


def assert_as_c_writes(values):
    assert written(values) == b"".join(b" %.9g\n" % value for value in values)


def test_any_doubles():
    rng = np.random.default_rng(2)
    doubles = rng.integers(0, 2**64, 100_000, dtype=np.uint64).view(np.float64)
    assert_as_c_writes(doubles[np.isfinite(doubles)])
    assert_as_c_writes(rng.uniform(-100, 0, 100_000))
    assert_as_c_writes(rng.uniform(-2, 2, 100_000) * 10.0 ** rng.integers(-101, 20, 100_000))


def test_numbers_at_the_edges():
    powers = 10.0 ** np.arange(-330, 308)
    parsed_powers = np.array([float(f"1e{i}") for i in range(-330, 309)])
    few_digits = np.random.default_rng(2).integers(1, 1000, 2000) * 10.0 ** -np.arange(1, 21).repeat(100)
    whole = np.arange(123_456_789, 123_456_889)[:, None]
    middles = (whole + 0.5) * 10.0 ** -np.arange(9, 110)
    near = np.array(
        [float(f"{n}.{half}e{e}") for n in whole[:9, 0] for half in (49999, 50001, 5) for e in range(-108, 9)]
    )
    nines = np.array([float(f"{'9' * n}5e{e}") for n in range(8, 16) for e in range(-115, 5)])
    for values in (powers, parsed_powers, few_digits, middles.ravel(), near, nines, 0.5 ** np.arange(1, 1075)):
        for of_these in (values, -values, np.nextafter(values, 0), np.nextafter(values, math.inf)):
            assert_as_c_writes(of_these)
    assert_as_c_writes([0.0, -0.0, 1.0, 5e-324, math.inf, -math.inf, math.nan, -math.nan, 1e9, 999999999.5, 1e8, 0.1])
    assert written([]) == b""


def test_there_are_as_many_scores_as_lines():
    (block,) = parse_blocks([REAL], "t")
    values = np.asfortranarray(np.arange(8.0).reshape(4, 2))
    assert append_scores(REAL, block.spans, values) == in_python(append_scores, REAL, block.spans, values)
    with pytest.raises(ValueError, match=r"expected 8 spans of 2 lines, found \(4, 8\)"):
        append_scores(REAL, block.spans, values[:2])


# --- words ----------------------------------------------------------------------------------------------------------------

ODD_WORDS = ["é".encode(), b"\xff", b"\0", b"\r", b"x" * 300]
WORDS = [*b"<unk> a b ab ba".split(), *ODD_WORDS, *(b"w%d" % i for i in range(500))]
ID_OF = {word: 7 * i for i, word in enumerate(WORDS)}


def ids_one_by_one(phrases):
    split = [[word for word in phrase.replace(b"\t", b" ").split(b" ") if word] for phrase in phrases]
    return [ID_OF.get(word, 0) for phrase in split for word in phrase], [len(phrase) for phrase in split]


def assert_equal_ids(phrases):
    for ids, lengths in (PhraseIds(ID_OF)(phrases), in_python(lambda: PhraseIds(ID_OF)(phrases))):
        assert (ids.tolist(), lengths.tolist()) == ids_one_by_one(phrases)
        assert ids.dtype == lengths.dtype == np.int64


PARTS = st.sampled_from(
    [b" ", b"  ", b"\t", b" \t", b"a", b"b", b"c", b"\0", b"\r", b"\xff", "é".encode(), b"w1", b"w499"]
)


@given(st.lists(st.lists(PARTS, max_size=8).map(b"".join) | st.binary().filter(lambda some: b"\n" not in some)))
def test_ids_of_any_phrases(phrases):
    assert_equal_ids(phrases)


def test_a_vocabulary_may_be_empty_or_of_one_word():
    for id_of, expected in (({}, [0, 0, 0]), ({b"a": 5}, [5, 0, 5]), ({b"": 3}, [0, 0, 0])):
        assert PhraseIds(id_of)([b"a b", b"", b"a"])[0].tolist() == expected


def test_ids_of_phrases_of_a_text():
    listed = [b"a b", b"", b"c", b"w1 w2 w3", b"b"] * 9
    phrases = TextPhrases.of(listed)
    for part in (slice(None), slice(7, 30), slice(None, None, 3), slice(44, None), slice(0)):
        assert list(phrases[part]) == listed[part]
        assert_equal_ids(phrases[part])
    assert [phrases[i] for i in range(-45, 45)] == listed * 2


@pytest.mark.parametrize("phrases", [[b"a \n b"], [b"a", b"\n"], [b"\n", b"", b"a"]])
def test_a_word_that_is_a_line_end_is_refused(phrases):
    for look_up in (PhraseIds(ID_OF), in_python(PhraseIds, ID_OF)):
        with pytest.raises(ValueError, match="expected phrases without line ends"):
            look_up(phrases)
        assert look_up([b"a\nb a", b"\n\n"])[0].tolist() == [0, 7, 0]  # where it is a part of one, it is not
