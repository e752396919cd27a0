"""Scores computed in another company of pairs: of the same bytes by the native core, of the same value by torch."""

import itertools

import pytest

from moses_rnn.native import native_core


def check_same_scores(actual: bytes, expected: bytes):
    """Torch's matrix products of different heights differ in their last digits; all that is no number is the same."""
    if native_core() is not None or actual == expected:
        assert actual == expected
        return
    for ours, theirs in itertools.zip_longest(actual.splitlines(), expected.splitlines(), fillvalue=b""):
        if ours != theirs:
            check_same_line(ours.split(b" "), theirs.split(b" "))


def check_same_line(actual: list[bytes], expected: list[bytes]):
    assert len(actual) == len(expected)
    for ours, theirs in zip(actual, expected, strict=True):
        if ours != theirs:
            assert float(ours) == pytest.approx(float(theirs), rel=1e-4)
