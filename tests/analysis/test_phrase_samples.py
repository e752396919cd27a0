"""Samples of a table's phrases: each phrase once, all as likely."""

import pytest

from moses_rnn.analysis.phrase_samples import draw_phrases, sample_table
from tests.analysis.tiny import checkpoint

LINES = [b"%b ||| %b ||| .1 .1 .7 .1\n" % pair for pair in [
    (b"a b", b"u"), (b"a b", b"v"), (b"c", b"u"), (b"d\te  f", b"u"), (b"d e f", b"u"), (b"a b", b"w"),
]]  # fmt: skip


def sample(tmp_path, lines=LINES, count=99, direction="source-to-target", **options):
    (tmp_path / "t").write_bytes(b"".join(lines))
    return sample_table(checkpoint(direction=direction), str(tmp_path / "t"), count, **options)


# what is asked for, what of it there is
SAMPLES = [
    ({}, {b"a b", b"c", b"d\te  f", b"d e f"}),
    ({"min_words": 2}, {b"a b", b"d\te  f", b"d e f"}),
    ({"min_words": 3}, {b"d\te  f", b"d e f"}),
    ({"direction": "target-to-source"}, {b"u", b"v", b"w"}),
]


@pytest.mark.parametrize(("options", "expected"), SAMPLES)
def test_a_sample_has_each_phrase_once_wherever_it_stands(tmp_path, options, expected):
    everything = sample(tmp_path, **options)
    assert len(everything) == len(expected)
    assert {phrase for (phrase,) in everything} == expected
    assert sample(tmp_path, LINES[::-1], **options) == everything
    assert sample(tmp_path, count=1, **options) == everything[:1]


def test_every_phrase_is_as_likely_as_any_other():
    phrases = [(b"%d" % i,) for i in range(3000)]
    drawn = draw_phrases(phrases * 2 + phrases[::-1], 900)
    assert len({*drawn}) == 900
    for part in range(10):  # in which 90 are expected, and 3 deviations are 27
        assert abs(sum(300 * part <= int(phrase) < 300 * (part + 1) for (phrase,) in drawn) - 90) < 27


def test_pairs_are_sampled_as_the_network_reads_them(tmp_path):
    assert len(sample(tmp_path, whole=True)) == len(LINES)
    assert sample(tmp_path, LINES[:1], direction="target-to-source", whole=True) == [(b"u", b"a b")]
