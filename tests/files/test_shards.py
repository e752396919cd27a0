"""Shards: which one is meant, and that together they are the file."""

import gzip

import pytest

from moses_rnn.files.shards import Shard, count_lines, parse_shard, read_part

LINES = [b"%d %s\n" % (i, b"x" * (i * 7 % 40)) for i in range(4000)]


@pytest.mark.parametrize("count", [1, 2, 3, 7, 5000])
@pytest.mark.parametrize("store", [bytes, gzip.compress])
@pytest.mark.parametrize("end", [b"\n", b""])
def test_all_parts_are_the_file_and_of_one_size(tmp_path, monkeypatch, count, store, end):
    monkeypatch.setattr("moses_rnn.files.streams.BLOCK_BYTES", 30_001)
    path, text = str(tmp_path / "file"), b"".join(LINES)[:-1] + end
    (tmp_path / "file").write_bytes(store(text))
    lines = count_lines(path)
    assert lines == 4000
    shares = [Shard(k, count).lines_of(lines) for k in range(1, count + 1)]
    if count == 5000:
        shares = [*shares[:20], *shares[-20:]]
    parts = [b"".join(read_part(path, share)) for share in shares]
    assert [len(part.splitlines()) for part in parts] == list(map(len, shares))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    assert count == 5000 or b"".join(parts) == text


@pytest.mark.parametrize("text", ["", "0/4", "5/4", "1", "a/b", "1/", "-1/4", "1/4/2", "²/4", "auto"])
def test_what_names_no_shard(text):
    assert str(parse_shard("2/4")) == "2/4"
    with pytest.raises(ValueError, match="expected k/N with k from 1 to N"):
        parse_shard(text)
