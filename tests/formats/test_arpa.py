import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_rnn.errors import FormatError
from moses_rnn.formats.arpa import parse_arpa

MODEL = b"""\\data\\
ngram 1=4
ngram 2=2
ngram 3=1

\\1-grams:
-1.5\t<unk>
-99\t<s>\t-0.30103
-.5\t</s>
-6e-1\tle\t0

\\2-grams:
-0.2\t<s> le\t-0.1
-0.25\tle </s>

\\3-grams:
0\t<s> le </s>

\\end\\
"""
N_GRAMS = [
    (b"<unk>",),
    (b"<s>",),
    (b"</s>",),
    (b"le",),
    (b"<s>", b"le"),
    (b"le", b"</s>"),
    (b"<s>", b"le", b"</s>"),
]


def parsed(data):
    return list(parse_arpa(data.splitlines(keepends=True), "lm.arpa"))


def line_of(text):
    return MODEL[: MODEL.index(text)].count(b"\n") + 1


def with_unigram(line):
    return MODEL.replace(b"-6e-1\tle\t0\n", line + b"\n")


def test_n_grams_come_in_the_file_s_order():
    assert parsed(MODEL) == N_GRAMS


SAME = {
    "CRLF": MODEL.replace(b"\n", b"\r\n"),
    "no end of the last line": MODEL.removesuffix(b"\n"),
    "blank lines before": b"\n \t\n\r\n" + MODEL,
    "comments before": b"# by hand\n\n#\n" + MODEL,
    "blanks between sections": MODEL.replace(b"\n\n", b"\n \t\n\n"),
    "never": MODEL.replace(b"-99", b"-inf"),
    "<UNK>": MODEL.replace(b"<unk>", b"<UNK>"),
    "no blank lines": MODEL.replace(b"\n\n", b"\n"),
    "blanks for tabs": MODEL.replace(b"\t", b" "),
    "something after the end": MODEL + b"anything\n\\1-grams:\n\xff",
    "counts that are wrong": MODEL.replace(b"ngram 1=4", b"ngram 1=400"),
}


@pytest.mark.parametrize("data", SAME.values(), ids=SAME)
def test_the_same_n_grams(data):
    assert list(parse_arpa(data.split(b"\n"), "lm.arpa")) == N_GRAMS


WORDS = [
    "10\u00a0km".encode(),
    "a\u2028b\u0085c\u3000d".encode(),
    b"\x0b\x0c\x1c",
    b"caf\xe9",  # no UTF-8
    b"\xff\xfe",
    b"<Unk>",
    b"-0.5",  # looks like a number
    b"\\end\\ing",
    b"\\1-grams:",  # as a word, not as a line
    b"&#124;",  # escaped as Moses does: nothing is unescaped
    b"|||",
]


@pytest.mark.parametrize("word", WORDS, ids=repr)
def test_odd_words_are_kept_byte_for_byte(word):
    for line in (b"-1\t" + word, b"-1\t" + word + b"\t-0.5"):
        n_grams = list(parse_arpa(with_unigram(line).split(b"\n"), "lm.arpa"))
        assert n_grams == [(word,) if n_gram == (b"le",) else n_gram for n_gram in N_GRAMS]


UNIGRAM = rf"^lm\.arpa:{line_of(b'-6e-1')}: expected a log-probability, 1 words and perhaps a backoff, found "
BIGRAM = rf"^lm\.arpa:{line_of(b'-0.25')}: expected a log-probability, 2 words and perhaps a backoff, found "
BINARY = b"mmap lm http://kheafield.com/code format version 5\n\0\0\0"
ADVICE = r"\n  A binary model of KenLM cannot be read here: give the ARPA file it was made from\.$"
REFUSED = {
    "no log-probability": (with_unigram(b"le\t-0.3"), rf"{UNIGRAM}'le\\t-0\.3'$"),
    "word alone": (with_unigram(b"le"), rf"{UNIGRAM}'le'$"),
    "number alone": (with_unigram(b"-1"), rf"{UNIGRAM}'-1'$"),
    "carriage return in a word": (with_unigram(b"-1\ta\rb"), rf"{UNIGRAM}'-1\\ta\\rb'$"),
    "comment among n-grams": (with_unigram(b"# le"), rf"{UNIGRAM}'# le'$"),
    "nan": (with_unigram(b"nan\tle"), rf"{UNIGRAM}'nan\\tle'$"),
    "decimal comma": (with_unigram(b"-0,6\tle"), rf"{UNIGRAM}'-0,6\\tle'$"),
    "three words": (with_unigram(b"-1\tle la les"), rf"{UNIGRAM}'-1\\tle la les'$"),
    "bytes": (with_unigram(b"\xff"), rf"{UNIGRAM}'\\xff'$"),
    "long": (with_unigram(b"x" * 1000), rf"{UNIGRAM}'{'x' * 200}' … \(1000 bytes\)$"),
    "bigram of one word": (
        MODEL.replace(b"-0.25\tle </s>", b"-0.25\tle"),
        rf"{BIGRAM}'-0\.25\\tle'$",
    ),
    "order of any length": (  # int() would refuse so many digits
        MODEL.replace(b"\\3-grams", b"\\" + b"3" * 5000 + b"-grams"),
        r"^lm\.arpa:16: expected a log-probability, 2 words and perhaps a backoff, found '\\\\3{199}' … \(5008 bytes\)$",
    ),
    "cut short": (
        MODEL[: MODEL.index(b"\\3-grams:")],
        r"^lm\.arpa: expected \\end\\ as the last line, found none: the file was cut short$",
    ),
    "empty": (b"", r"^lm\.arpa: expected \\end\\ as the last line, found none: the file was cut short$"),
    "a text": (
        b"le chat dort\n",
        r"^lm\.arpa:1: expected an ARPA file, which begins with \\data\\, found another line, of 12 bytes" + ADVICE,
    ),
    "a text after blank lines": (
        b"\r\n\n" + MODEL.replace(b"\\data\\", b"le chat"),
        r"^lm\.arpa:3: expected an ARPA file, which begins with \\data\\, found another line, of 7 bytes" + ADVICE,
    ),
    "a binary model": (
        BINARY,
        r"^lm\.arpa:1: expected an ARPA file, which begins with \\data\\, found a binary model" + ADVICE,
    ),
}


@pytest.mark.parametrize(("data", "message"), REFUSED.values(), ids=REFUSED)
def test_refuses(data, message):
    with pytest.raises(FormatError, match=message) as refused:
        list(parse_arpa(data.split(b"\n") if data else [], "lm.arpa"))
    assert refused.value.exit_code == 3


def test_what_stands_before_the_error_was_given():
    n_grams = parse_arpa(with_unigram(b"odd").split(b"\n"), "lm.arpa")
    assert [next(n_grams) for _ in range(3)] == N_GRAMS[:3]
    with pytest.raises(FormatError, match=UNIGRAM):
        next(n_grams)


@given(st.binary(max_size=80))
def test_any_bytes_are_parsed_or_refused(noise):
    for data in (noise, MODEL[:70] + noise + MODEL[70:]):
        with contextlib.suppress(FormatError):
            n_grams = list(parse_arpa(data.split(b"\n"), "lm.arpa"))
            assert not any(set(word) & set(b" \t\n") or not word for n_gram in n_grams for word in n_gram)
