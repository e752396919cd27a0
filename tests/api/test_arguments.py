"""What Python code gives: text and pairs of any kind become bytes, and what is something else is named."""

import numpy as np
import pytest

from moses_rnn.api.pairs import Row, as_str, pairs_of, texts_of


def plain(pairs):
    return [pair[1:] for pair in pairs]


@pytest.mark.parametrize(
    "pairs",
    [
        [("à", "b")],
        (("à", "b"),),
        iter([["à", b"b"]]),
        np.array([["à", "b"]]),
        {("à", "b"): 1}.keys(),
        (pair for pair in [("à".encode(), "b")]),
    ],
    ids=lambda pairs: type(pairs).__name__,
)
def test_pairs_are_any_iterable_of_str_or_bytes(pairs):
    assert plain(pairs_of(pairs)) == [("à".encode(), b"b", None)]


def test_sources_and_targets_may_come_apart_and_alignments_third():
    assert list(pairs_of(["a", "b"], iter([b"c", "d"]))) == [
        ("pairs[0]", b"a", b"c", None),
        ("pairs[1]", b"b", b"d", None),
    ]
    row = Row("a", "b", (1.0,), "0-0", (1.0, 1.0, 1.0))
    assert plain(pairs_of([("a", "b", "0-0"), row])) == [(b"a", b"b", b"0-0")] * 2


def test_pairs_are_taken_as_they_come():
    def endless():
        while True:
            yield "a", "b"

    assert next(pairs_of(endless())).source == b"a"


def test_odd_bytes_come_back_as_they_were():
    (odd,) = texts_of("texts", [as_str(b"\xff a")])
    assert odd == b"\xff a"


WRONG = {
    "a pair of two letters": lambda: pairs_of(["ab"]),
    "pairs of letters": lambda: pairs_of("ab"),
    "a pair without order": lambda: pairs_of([("a", "b"), {"a", "b"}]),
    "a mapping": lambda: pairs_of({"ab": "b"}),
    "no pair": lambda: pairs_of([("a", "b"), None]),
    "half a pair": lambda: pairs_of([("a",)]),
    "a number": lambda: pairs_of([("a", 3)]),
    "a line end": lambda: pairs_of([("a", "b\n")]),
    "what UTF-8 cannot hold": lambda: pairs_of([("\ud800", "b")]),
    "too few targets": lambda: pairs_of(["a"], []),
    "too many targets": lambda: pairs_of(["a"], ["b", "c"]),
    "letters as targets": lambda: pairs_of(["a"], "b"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_would_give_a_wrong_number_is_refused(name):
    with pytest.raises(ValueError, match="expected|argument 2 is"):
        list(WRONG[name]())
