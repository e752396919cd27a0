"""Samples of a table's phrases: each phrase once, all as likely."""

import pytest

from moses_rnn.analysis.phrase_samples import Pair, PhraseSample, sample_table
from tests.analysis.tiny import checkpoint

LINES = [b"%b ||| %b ||| .1 .1 .7 .1\n" % pair for pair in [
    (b"a b", b"u"), (b"a b", b"v"), (b"c", b"u"), (b"d\te  f", b"u"), (b"d e f", b"u"), (b"a b", b"w"),
]]  # fmt: skip


def sample(tmp_path, lines=LINES, count=99, direction="source-to-target", **options):
    (tmp_path / "t").write_bytes(b"".join(lines))
    return sample_table(checkpoint(direction=direction), str(tmp_path / "t"), count, 1, **options)


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
    assert {pair.read for pair in everything} == expected
    assert sample(tmp_path, LINES[::-1], **options) == everything
    assert sample(tmp_path, count=1, **options) == everything[:1]


def test_every_phrase_is_as_likely_as_any_other():
    phrases = [b"%d" % i for i in range(10)] * 3
    times = dict.fromkeys(phrases, 0)
    for seed in range(300):
        sample = PhraseSample(3, seed)
        for phrase in phrases:
            sample.add(phrase)
        for (phrase,) in sample.items():
            times[phrase] += 1
    expected, deviation = 300 * 3 / 10, (300 * 0.3 * 0.7) ** 0.5
    assert all(abs(n - expected) < 4 * deviation for n in times.values())


def test_pairs_are_sampled_as_the_network_reads_them(tmp_path):
    assert len(sample(tmp_path, whole=True)) == len(LINES)
    assert sample(tmp_path, LINES[:1], direction="target-to-source", whole=True) == [Pair(b"u", b"a b")]
