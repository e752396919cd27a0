"""The native core's work on tables is the same as the reference's, byte for byte."""

import itertools
import math
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_rnn.errors import FormatError
from moses_rnn.formats import regular_lines
from moses_rnn.formats.native_table import native_table
from moses_rnn.formats.numbers import rows_as_text
from moses_rnn.formats.table_blocks import parse_blocks
from moses_rnn.formats.text_phrases import TextPhrases
from moses_rnn.native import SWITCH
from tests.commands import ROOT

pytestmark = pytest.mark.skipif(native_table() is None, reason="the native core was not built, or is switched off")

REAL = (
    b"! &quot; ||| ! &quot; ||| 0.71 0.61 1 0.75 ||| 0-0 1-1 ||| 7 5 5 ||| |||\n"
    b"deux caf\xc3\xa9s , ||| two caf\xc3\xa9s , ||| 1e-05 2.5e-7 0.000012 0.5 ||| 0-0 1-1 2-2 ||| 1 1 1 ||| |||\n"
    b"le \xe2\x80\x99 ||| the ||| 0.333333 1 12.5 3. ||| 0-0\n"
    b"a ||| b ||| 1 1 1 1\n"
)


def parsed(text, name):
    """All that a parser makes of a text: its blocks, what it rejects, the error if there is one."""
    rejected = []
    for take in (lambda *of_line: rejected.append((of_line[0], str(of_line[1]))), None):
        blocks = []
        try:
            for block in parse_blocks([text, text[: len(text) // 2]], name, take):
                irregular = [(line.number, line.places, line.line) for line in block.irregular]
                blocks.append((block.text, block.places.tolist(), block.numbers.tolist(), irregular))
        except FormatError as error:
            blocks.append(str(error))
        yield blocks
    yield rejected


def assert_equally_parsed(text):
    native = list(parsed(text, "t"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SWITCH, "0")
        assert native == list(parsed(text, "t"))


def assert_equally_regular(text, columns=(1, 2, 4, 17)):
    ends = regular_lines.line_ends(text)
    np.testing.assert_array_equal(native_table().line_ends(text), ends)
    for first, count in itertools.product({0, 1, len(ends)}, columns):
        expected = regular_lines.find_regular(text, ends, first, count)
        for mine, reference in zip(native_table().find_regular(text, ends, first, count), expected, strict=True):
            np.testing.assert_array_equal(mine, reference)
            assert mine.dtype == reference.dtype


PIECES = [b" ||| ", b"|||", b"|", b" ", b"\t", b"\n", b"\r\n", b"a", b"b c", "é".encode(), b"\xff", b"\xe2\x80", b"]", b"[x]", b"\0"]  # fmt: skip
NUMBERS = [b"0.5", b"1", b"1 0.25", b"1e-5", b"1e-3", b"e-39", b"0", b"-1", b".", b"0.000000", b"0.000001", b"9" * 15, b"9" * 16]  # fmt: skip
FIELDS = [b"a ||| b ||| 0.5 1", b"c ||| d ||| 1 1 ||| 0-0\n", b"a ||| b ||| ", b" ||| 0-0\n"]


@given(st.lists(st.sampled_from([*PIECES, *NUMBERS, *FIELDS]), max_size=25).map(b"".join))
def test_any_text(text):
    if text:
        assert_equally_regular(text)
        assert_equally_parsed(text)
    assert_equally_parsed(b"a ||| b ||| 0.5 1\n" + text)


@given(st.lists(st.sampled_from([*NUMBERS, b"e", b"-", b"5", b"e-0", b"0."]), max_size=6).map(b"".join))
def test_any_number(number):
    assert_equally_regular(b"a ||| b ||| 1\na ||| b ||| %b ||| 0-0\na ||| b ||| %b 1\n" % (number, number), (1, 2))


def test_many_changes_of_lines_that_look_real():
    rng = np.random.default_rng(1)
    alphabet = np.frombuffer(b"|| \t\n\r0159.e-+]a\0\x80\xc3\xa9\xff", np.uint8)
    for _ in range(1500):
        octets = np.frombuffer(REAL * 3, np.uint8).copy()
        changed = rng.integers(0, len(octets), rng.integers(1, 8))
        octets[changed] = rng.choice(alphabet, len(changed))
        for text in (octets.tobytes(), np.delete(octets, changed).tobytes(), octets.tobytes()[: changed[0] + 1]):
            assert_equally_regular(text, (4,))
            assert_equally_parsed(text)


@given(st.binary(max_size=12))
def test_any_bytes_are_text_or_not(some):
    assert_equally_regular(b"a ||| b ||| 1\n%b ||| b ||| 1\n" % some, (1,))


def test_ends_that_are_none_are_refused():
    for ends in ([3, 2], [0, 5], [14, 15], [-1, 14]):
        with pytest.raises(ValueError, match="expected the ends of a text's lines"):
            native_table().find_regular(b"a ||| b ||| 1\n", np.array(ends), 0, 1)


# --- numbers --------------------------------------------------------------------------------------------------------------


def written(values):
    """Numbers as the core writes them, a line for each."""
    places = np.repeat(np.arange(len(values))[:, None] + [0, 0, 0, 0, 0, 1], 1, axis=1)
    return native_table().add_numbers(b"\n" * len(values), places, np.reshape(values, (-1, 1)))


def assert_as_c_writes(values):
    assert written(values) == b"".join(b" %.9g\n" % value for value in values)


def test_any_doubles():
    rng = np.random.default_rng(2)
    doubles = rng.integers(0, 2**64, 100_000, dtype=np.uint64).view(np.float64)
    assert_as_c_writes(doubles[np.isfinite(doubles)])
    assert_as_c_writes(rng.uniform(-100, 0, 100_000))
    assert_as_c_writes(rng.uniform(-2, 2, 100_000) * 10.0 ** rng.integers(-101, 20, 100_000))


@given(st.lists(st.floats(), max_size=20))
def test_any_number_is_written_as_c_writes_it(values):
    assert_as_c_writes(values)


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


def test_numbers_are_added_behind_the_scores_of_each_line(monkeypatch):
    rng = np.random.default_rng(3)
    (block,) = parse_blocks([b" x ||| y ||| 1 1 1 1\n" + REAL * 3 + b"x ||| y ||| 1 1 1 1"], "t")
    for columns in (1, 2, 5):
        values = rng.uniform(-30, 1, (len(block), columns))
        native = block.with_numbers(values)
        assert native == block.with_scores(rows_as_text(values))
        assert block[3:7].with_numbers(values[3:7]) == b"".join(native.splitlines(keepends=True)[3:7])
        assert block.with_numbers(np.asfortranarray(values)) == native
        with monkeypatch.context() as patch:
            patch.setenv(SWITCH, "0")
            assert block.with_numbers(values) == native
    with pytest.raises(ValueError, match=r"expected 6 places of 2 lines, found \(14, 6\)"):
        block.with_numbers(values[:2])
    with pytest.raises(ValueError, match="expected the places of a text's lines"):
        native_table().add_numbers(b"a", np.array([[0, 0, 0, 0, 2, 1]]), np.zeros((1, 1)))


COMMA = """comment_char %
escape_char /
LC_NUMERIC
decimal_point "<U002C>"
thousands_sep "<U002E>"
grouping 3;3
END LC_NUMERIC
"""
IN_THE_LOCALE = """
import locale, sys
import numpy as np
from moses_rnn.formats.native_table import native_table
locale.setlocale(locale.LC_NUMERIC, "comma")
assert locale.localeconv()["decimal_point"] == ","
values = np.array([[0.5], [1.5e-300], [12345678912345.678], [1.5e300], [-2.5e-310], [0.1234567885], [1e-200], [np.inf]])
places = np.zeros((len(values), 6), np.int64)
sys.stdout.buffer.write(native_table().add_numbers(b"", places, values))
"""


@pytest.mark.skipif(shutil.which("localedef") is None, reason="there is no localedef")
def test_a_point_stays_a_point_whatever_the_locale(tmp_path):
    (tmp_path / "source").write_text(COMMA)
    subprocess.run(["localedef", "-c", "-i", tmp_path / "source", tmp_path / "comma"], capture_output=True, check=False)
    if not (tmp_path / "comma").is_dir():
        pytest.skip("localedef makes no locale here")
    environment = {**os.environ, "LOCPATH": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", IN_THE_LOCALE], env=environment, stdout=subprocess.PIPE, check=True)
    assert done.stdout == b" 0.5 1.5e-300 1.23456789e+13 1.5e+300 -2.5e-310 0.123456788 1e-200 inf"


# --- words ----------------------------------------------------------------------------------------------------------------

WORDS = [
    b"<unk>",
    b"a",
    b"b",
    b"ab",
    b"ba",
    "é".encode(),
    b"\xff",
    b"\0",
    b"\r",
    b"x" * 300,
    *(b"w%d" % i for i in range(500)),
]
ID_OF = {word: 7 * i for i, word in enumerate(WORDS)}


def ids_one_by_one(phrases):
    split = [[word for word in phrase.replace(b"\t", b" ").split(b" ") if word] for phrase in phrases]
    return [ID_OF.get(word, 0) for phrase in split for word in phrase], [len(phrase) for phrase in split]


def assert_equal_ids(phrases):
    ids, lengths = native_table().word_ids(ID_OF)(TextPhrases.of(phrases))
    assert (ids.tolist(), lengths.tolist()) == ids_one_by_one(phrases)
    assert ids.dtype == lengths.dtype == np.int64


PARTS = st.sampled_from(
    [b" ", b"  ", b"\t", b" \t", b"a", b"b", b"c", b"\0", b"\r", b"\xff", "é".encode(), b"w1", b"w499"]
)


@given(st.lists(st.lists(PARTS, max_size=8).map(b"".join) | st.binary().filter(lambda some: b"\n" not in some)))
def test_ids_of_any_phrases(phrases):
    assert_equal_ids(phrases)


def test_ids_of_many_words():
    rng = np.random.default_rng(4)
    words = [*WORDS, *(b"v%d" % i for i in range(500)), b"", b"\t"]
    assert_equal_ids([b" ".join([words[i] for i in rng.integers(0, len(words), n)]) for n in rng.integers(0, 9, 2000)])
    assert_equal_ids([b"a"] * 1000)
    assert_equal_ids([b"a " * 1000])


def test_a_vocabulary_may_be_empty_or_of_one_word():
    phrases = TextPhrases.of([b"a b", b"", b"a"])
    for id_of, expected in (({}, [0, 0, 0]), ({b"a": 5}, [5, 0, 5]), ({b"": 3}, [0, 0, 0])):
        assert native_table().word_ids(id_of)(phrases)[0].tolist() == expected


def test_phrases_outside_their_text_are_refused():
    look_up = native_table().word_ids(ID_OF)
    for begin, end in ((-1, 1), (0, 4), (2, 1)):
        with pytest.raises(ValueError, match="expected phrases within their text"):
            look_up(TextPhrases(b"a b", np.array([0, begin]), np.array([3, end])))
    with pytest.raises(ValueError, match="expected phrases without line ends"):
        look_up(TextPhrases.of([b"a", b"b \n"]))
