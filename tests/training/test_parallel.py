"""Line-parallel texts: what is read, what is refused before anything is written."""

import gzip

import pytest

from moses_rnn.errors import InputError, Stopped
from moses_rnn.training import materials
from moses_rnn.training.materials import ParallelTexts, Watch
from tests.training.rare import WATCH


def texts(folder, source, target):
    (folder / "t.en").write_bytes(source)
    (folder / "t.fr").write_bytes(target)
    return ParallelTexts.of_prefix(str(folder / "t"), "en", "fr")


def read(both):
    return list(both.pairs(WATCH))


def test_lines_are_paired(tmp_path):
    both = texts(tmp_path, b"a b\r\n\nc", b"x\ny z\n\n")
    both.check_lengths()
    assert read(both) == [(b"a b", b"x"), (b"", b"y z"), (b"c", b"")]


def test_compressed_texts_are_found(tmp_path):
    (tmp_path / "t.en.gz").write_bytes(gzip.compress(b"a\n"))
    (tmp_path / "t.fr").write_bytes(b"x\n")
    assert read(ParallelTexts.of_prefix(str(tmp_path / "t"), "en", "fr")) == [(b"a", b"x")]


@pytest.mark.parametrize(("source", "target"), [(b"a\nb\n", b"x\n"), (b"a\n", b"x\ny\nz\n")])
def test_texts_of_different_length_are_refused_with_both_counts(tmp_path, source, target):
    both = texts(tmp_path, source, target)
    lines = source.count(b"\n"), target.count(b"\n")
    message = rf"t\.en, .*t\.fr: expected as many lines in both, found {lines[0]} and {lines[1]}"
    for look in (both.check_lengths, lambda: read(both)):
        with pytest.raises(InputError, match=message):
            look()


def test_reading_is_observed_and_can_be_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(materials, "LINES_AT_ONCE", 2)
    both, seen = texts(tmp_path, b"a\n" * 5, b"x\n" * 5), []
    list(both.pairs(Watch(lambda lines, share: seen.append((lines, share)), lambda: False)))
    assert len(seen) == 3
    assert seen[-1] == (5, 1.0)
    with pytest.raises(Stopped, match="run the same command again"):
        list(both.pairs(Watch(lambda *_: None, lambda: True)))
