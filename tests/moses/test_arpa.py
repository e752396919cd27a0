import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_rnn.errors import FormatError
from moses_rnn.moses.arpa import parse_arpa

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
N_GRAMS = [tuple(text.split()) for text in (b"<unk>", b"<s>", b"</s>", b"le", b"<s> le", b"le </s>", b"<s> le </s>")]


def line_of(text):
    return MODEL[: MODEL.index(text)].count(b"\n") + 1


def with_unigram(line):
    return MODEL.replace(b"-6e-1\tle\t0\n", line + b"\n")


SAME = {
    "CRLF": MODEL.replace(b"\n", b"\r\n"),
    "blank lines before": b"\n \t\n\r\n" + MODEL,
    "never": MODEL.replace(b"-99", b"-inf"),
    "<UNK>": MODEL.replace(b"<unk>", b"<UNK>"),
    "no blank lines": MODEL.replace(b"\n\n", b"\n"),
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
    b"-0.5",  # looks like a number
    b"\\1-grams:",  # as a word, not as a line
]


@pytest.mark.parametrize("word", WORDS, ids=repr)
def test_odd_words_are_kept_byte_for_byte(word):
    for line in (b"-1\t" + word, b"-1\t" + word + b"\t-0.5"):
        n_grams = list(parse_arpa(with_unigram(line).split(b"\n"), "lm.arpa"))
        assert n_grams == [(word,) if n_gram == (b"le",) else n_gram for n_gram in N_GRAMS]


BINARY = b"mmap lm http://kheafield.com/code format version 5\n\0\0\0"
HERE = f":{line_of(b'-6e-1')}"
REFUSED = {  # and where
    "no log-probability": (with_unigram(b"le\t-0.3"), HERE),
    "nan": (with_unigram(b"nan\tle"), HERE),
    "long": (with_unigram(b"x" * 1000), HERE),
    "order of any length": (MODEL.replace(b"\\3-grams", b"\\" + b"3" * 5000 + b"-grams"), ":16"),  # too long for int()
    "cut short": (MODEL[: MODEL.index(b"\\3-grams:")], ""),
    "empty": (b"", ""),
    "a text": (b"le chat dort\n", ":1"),
    "a binary model": (BINARY, ":1"),
}


@pytest.mark.parametrize(("data", "place"), REFUSED.values(), ids=REFUSED)
def test_refuses(data, place):
    with pytest.raises(FormatError, match=rf"^lm\.arpa{place}: expected ") as refused:
        list(parse_arpa(data.split(b"\n") if data else [], "lm.arpa"))
    assert refused.value.exit_code == 3
    assert "chat" not in str(refused.value)
    assert len(str(refused.value)) < 500


@given(st.binary(max_size=80))
def test_any_bytes_are_parsed_or_refused(noise):
    for data in (noise, MODEL[:70] + noise + MODEL[70:]):
        with contextlib.suppress(FormatError):
            n_grams = list(parse_arpa(data.split(b"\n"), "lm.arpa"))
            assert not any(set(word) & set(b" \t\n") or not word for n_gram in n_grams for word in n_gram)
