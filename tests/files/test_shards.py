"""Shards: which one is meant, and that together they are the file, whatever it is stored as."""

import gzip
import itertools

import pytest

from moses_rnn.errors import MosesRnnError
from moses_rnn.files.metered import Meter
from moses_rnn.files.shards import Part, Shard

LINES = [b"%d %s\n" % (i // (1 + i % 5), b"x" * (i * 7 % 40)) for i in range(4000)]


def first_word(line):
    return line.partition(b" ")[0]


STORED = {
    "plain": lambda text: text,
    "gz": gzip.compress,
}


@pytest.mark.parametrize("count", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("stored", STORED)
def test_all_parts_are_the_file_and_no_key_is_parted(tmp_path, monkeypatch, count, stored):
    monkeypatch.setattr("moses_rnn.files.streams.BLOCK_BYTES", 3001)
    text = b"".join(LINES)
    (tmp_path / "file").write_bytes(STORED[stored](text))
    parts = [Part(str(tmp_path / "file"), Shard(k + 1, count), first_word) for k in range(count)]
    texts = [b"".join(part.blocks()) for part in parts]
    assert b"".join(texts) == text
    ends = [0, *(part.end for part in parts)]
    assert [(part.begin, part.end) for part in parts] == list(itertools.pairwise(ends))
    assert ends[-1] == len(text)
    lines = [part.splitlines() for part in texts if part]
    for one, other in itertools.pairwise(lines):
        assert first_word(one[-1]) != first_word(other[0])
    if count < 10:
        assert max(map(len, texts)) < 1.2 * len(text) / count


@pytest.mark.parametrize("end", [b"\n", b""])
def test_files_of_few_keys_have_empty_parts(tmp_path, end):
    text = b"a 1\n" * 50 + b"b 2" + end
    (tmp_path / "file").write_bytes(text)
    texts = [b"".join(Part(str(tmp_path / "file"), Shard(k, 5), first_word).blocks()) for k in range(1, 6)]
    assert texts == [b"a 1\n" * 50, b"", b"", b"", b"b 2" + end] or b"".join(texts) == text
    assert sorted(map(len, texts))[:3] == [0, 0, 0]


def test_the_meter_follows_the_part(tmp_path):
    (tmp_path / "file").write_bytes(b"".join(LINES))
    meter = Meter()
    lines = sum(
        block.count(b"\n") for block in Part(str(tmp_path / "file"), Shard(2, 3), first_word).blocks(meter=meter)
    )
    assert (meter.lines_read, meter.share) == (lines, 1.0)


ARRAY = {"SLURM_ARRAY_TASK_ID": "12", "SLURM_ARRAY_TASK_MIN": "10", "SLURM_ARRAY_TASK_COUNT": "5"}
TASK = {"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}
RANK = {"RANK": "3", "WORLD_SIZE": "4"}


@pytest.mark.parametrize(
    ("text", "environment", "shard"),
    [
        ("1/1", {}, Shard(1, 1)),
        ("2/4", ARRAY, Shard(2, 4)),
        ("auto", ARRAY | TASK, Shard(3, 5)),
        ("auto", TASK | RANK, Shard(1, 4)),
        ("auto", RANK, Shard(4, 4)),
    ],
)
def test_the_shard_that_is_meant(text, environment, shard):
    assert Shard.parse(text, environment) == shard
    assert str(Shard(2, 4)) == "2/4"


@pytest.mark.parametrize("text", ["", "0/4", "5/4", "1", "a/b", "1/", "-1/4", "1/4/2", "²/4"])
def test_what_names_no_shard(text):
    with pytest.raises(MosesRnnError, match="--shard: expected k/N with k from 1 to N, or auto, found"):
        Shard.parse(text, {})


def test_an_environment_that_names_none():
    with pytest.raises(MosesRnnError, match="expected SLURM_ARRAY_TASK_ID, SLURM_PROCID, RANK with its count"):
        Shard.parse("auto", {"RANK": "1"})
    with pytest.raises(MosesRnnError, match=r"found SLURM_ARRAY_TASK_ID=15\n  A Slurm array must be numbered without"):
        Shard.parse("auto", ARRAY | {"SLURM_ARRAY_TASK_ID": "15"})
    with pytest.raises(ValueError, match="expected a shard from 1 to 2, found 3"):
        Shard(3, 2)
