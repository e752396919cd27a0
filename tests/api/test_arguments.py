"""What Python code gives: text and pairs of any kind become bytes, and what is something else is named."""

import numpy as np
import pytest

from moses_rnn.api.arguments import as_str, check_path, check_positive, check_whole, pairs_of, texts_of
from moses_rnn.errors import ArgumentError, ArgumentTypeError, MosesRnnError


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


def test_sources_and_targets_may_come_apart():
    assert list(pairs_of(["a", "b"], iter([b"c", "d"]))) == [
        (0, b"a", b"c", None),
        (1, b"b", b"d", None),
    ]


def test_an_alignment_is_the_third_part():
    assert plain(pairs_of([("a", "b", "0-0")])) == [(b"a", b"b", b"0-0")]


def test_pairs_are_taken_as_they_come():
    def endless():
        while True:
            yield "a", "b"

    assert next(pairs_of(endless())).source == b"a"


def test_odd_bytes_come_back_as_they_were():
    (odd,) = texts_of("texts", [as_str(b"\xff a")])
    assert odd == b"\xff a"


WRONG = [
    (lambda: pairs_of("a b"), TypeError, "pairs: expected an iterable of pairs of a source and a target, found str 'a b'"),
    (lambda: pairs_of({"a": "b"}), TypeError, "pairs: expected an iterable of pairs of a source and a target, found dict"),
    (lambda: pairs_of(None), TypeError, "pairs: expected an iterable of pairs of a source and a target, found None"),
    (lambda: pairs_of(["ab"]), TypeError, "pairs[0]: expected a pair (source, target), or (source, target, alignment), found str 'ab'\n  Two lists"),
    (lambda: pairs_of([("a", "b"), {"a", "b"}]), TypeError, "pairs[1]: expected a pair (source, target), or (source, target, alignment), found set"),
    (lambda: pairs_of([("a",)]), ValueError, "pairs[0]: expected a pair (source, target), or (source, target, alignment), found 1 parts: ('a',)"),
    (lambda: pairs_of([("a", 3)]), TypeError, "pairs[0][1]: expected str or bytes, found int 3"),
    (lambda: pairs_of([("a", "b\n")]), ValueError, r"pairs[0][1]: expected a text without line ends, found 'b\n'"),
    (lambda: pairs_of([("\ud800", "b")]), ValueError, r"pairs[0][0]: expected text that UTF-8 can hold, found '\ud800': surrogates not allowed"),
    (lambda: pairs_of(["a"], []), ValueError, "targets: expected as many as there are sources, found 0, and more sources"),
    (lambda: pairs_of(["a"], ["b", "c"]), ValueError, "targets: expected as many as there are sources, 1, found more"),
    (lambda: pairs_of(["a"], "b"), TypeError, "targets: expected an iterable of texts, found a single str 'b'\n  A single one goes into a list: ['b']."),
    (lambda: texts_of("sources", 3), TypeError, "sources: expected an iterable of texts, found int 3"),
    (lambda: [check_whole("n", 0)], ValueError, "n: expected a whole number from 1 on, found 0"),
    (lambda: [check_whole("n", 9, most=8)], ValueError, "n: expected a whole number from 1 to 8, found 9"),
    (lambda: [check_whole("n", True)], TypeError, "n: expected a whole number from 1 on, found bool True"),
    (lambda: [check_positive("t", float("inf"))], ValueError, "t: expected a number above 0, found inf"),
    (lambda: [check_positive("t", "1")], TypeError, "t: expected a number above 0, found str '1'"),
    (lambda: [check_path("table", b"t")], TypeError, "table: expected a path, as str or os.PathLike, found bytes b't'"),
]  # fmt: skip


@pytest.mark.parametrize(("use", "kind", "message"), WRONG, ids=[message[:40] for *_, message in WRONG])
def test_what_is_wrong_is_named(use, kind, message):
    with pytest.raises(ArgumentTypeError if kind is TypeError else ArgumentError) as error:
        list(use())
    assert str(error.value).startswith(message)
    assert isinstance(error.value, kind)
    assert isinstance(error.value, MosesRnnError)
    assert isinstance(error.value, ArgumentTypeError) == (kind is TypeError)
