"""Embeddings in word2vec's text: read, refused by line, written."""

import itertools
import math
import struct

import pytest

from moses_rnn.errors import FormatError
from moses_rnn.training.embeddings import embedding_lines, read_embeddings

TEXT = b"the 0.5 -1e-3 2\ncat .25 +1 7.\ndog 0 0 1E2\n"
ROWS = {b"the": [0.5, -0.001, 2.0], b"cat": [0.25, 1.0, 7.0], b"dog": [0.0, 0.0, 100.0]}


def read(text, width=3, wanted=(b"the", b"cat", b"dog", b"cow")):
    return dict(read_embeddings(text.splitlines(keepends=True), "w.vec", width, set(wanted)))


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        b"3 3\n" + TEXT,
        TEXT.replace(b"\n", b" \n"),  # as word2vec itself ends lines
        TEXT.replace(b"\n", b"\r\n"),
        TEXT.replace(b" ", b"\t"),
        TEXT.removesuffix(b"\n"),
    ],
)
def test_rows_are_read_with_or_without_a_header(text):
    assert read(text) == ROWS


def test_only_wanted_words_are_given_out():
    assert read(TEXT, wanted=[b"dog", b"cow"]) == {b"dog": ROWS[b"dog"]}
    assert read(TEXT, wanted=[]) == {}


def test_a_word_may_look_like_a_number_and_bytes_need_be_no_text():
    assert read(b"7 1 2\n\xff 3 4\n", 2, [b"7", b"\xff"]) == {b"7": [1.0, 2.0], b"\xff": [3.0, 4.0]}
    assert read(b"7 2\n", 1, [b"7"]) == {b"7": [2.0]}
    assert read(b"1 1\n7 2\n", 1, [b"7"]) == {b"7": [2.0]}


OFF = "expected finite numbers as float32 holds them, found"
REFUSED = [
    (b"2 4\nthe 1 2 3 4\n", 1, "expected 3 numbers for each word, the network's embedding size, found 4"),
    (b"the 1 2\n", 1, "expected a word and 3 numbers, the network's embedding size, found 2 behind 'the'"),
    (TEXT + b"cow 1 2 3 4\n", 4, "expected a word and 3 numbers, the network's embedding size, found 4 behind 'cow'"),
    (TEXT + b"\n", 4, "expected a word and 3 numbers, found an empty line"),
    (TEXT + b"cat 1 2 3\n", 4, "expected each word once, found 'cat' again"),
    (b"cow 1 2 3\nx 1 2 3\nx 1 2 3\n", 3, "expected each word once, found 'x' again"),
    *((b"the 1 %b 3\n" % text, 1, f"{OFF} '{text.decode()}' for 'the'") for text in
      (b"nan", b"-inf", b"1e39", b"0x1", b"1_0", b"one", b"1,5")),
    (TEXT + b"x 1 nan 3\n", 4, f"{OFF} 'nan' for 'x'"),
    (b"4 3\n" + TEXT, None, "expected 4 rows, as its first line says, found 3"),
    (b"2 3\n" + TEXT, None, "expected 2 rows, as its first line says, found 3"),
    (b"", None, "expected rows of a word and 3 numbers, found 0"),
    (b"%b 3\n" % (b"9" * 5000), 1, "expected a word and 3 numbers"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "message"), REFUSED)
def test_what_is_refused_names_file_line_expectation_and_finding(text, line, message):
    with pytest.raises(FormatError) as refused:
        read(text)
    assert str(refused.value).startswith(f"w.vec:{line}: " if line else "w.vec: ")
    assert message in str(refused.value)


def test_a_file_is_read_a_line_at_a_time():
    endless = (b"w%d 1 2 3\n" % i for i in itertools.count())
    rows = read_embeddings(endless, "w.vec", 3, {b"w5", b"w9"})
    assert [next(rows)[0], next(rows)[0]] == [b"w5", b"w9"]


def test_what_is_written_is_read_again_to_the_bit():
    numbers = [struct.unpack("f", struct.pack("I", 12345 + 98765432 * i))[0] for i in range(12)]
    rows = [[x if math.isfinite(x) else 1.5 for x in numbers[i : i + 4]] for i in range(0, 12, 4)]
    lines = list(embedding_lines([b"a", b"b", b"7"], rows, 4))
    assert lines[0] == b"3 4\n"
    again = dict(read_embeddings(lines, "w.vec", 4, {b"a", b"b", b"7"}))
    assert [struct.pack("4f", *row) for row in again.values()] == [struct.pack("4f", *row) for row in rows]
    assert list(again) == [b"a", b"b", b"7"]
