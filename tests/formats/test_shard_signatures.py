"""Signatures of shards, which may hold anything, and that of their table. What merging makes of them: test_merging."""

import json

import pytest

from moses_rnn.errors import InputError
from moses_rnn.formats.shard_signatures import merged_signature, read_shard
from moses_rnn.formats.signatures import PROGRAM

COLUMN = {"index": 4, "name": "RNN", "meaning": "m", "floor": -87.0, "unknown": 3, "floored": 1, "lowest": -9.0,
          "highest": -1.0}  # fmt: skip
SHARD = {"number": 1, "count": 2, "begin": 0, "end": 50, "size": 90, "table": "/t.gz", "identity": {"bytes": 70},
         "factors": [1, 1], "columns": 4}  # fmt: skip
RECORD = {"program": PROGRAM, "lines": 10, "columns": 5, "added_columns": [COLUMN], "shard": SHARD, "native": None,
          "rejected_lines": 2, "file": {"bytes": 7, "sha256": "ab"}, "models": []}  # fmt: skip


def shard(tmp_path, name="s", **changes):
    (tmp_path / name).write_bytes(b"")
    (tmp_path / f"{name}.json").write_text(json.dumps(RECORD | changes))
    return str(tmp_path / name)


def test_a_shard_as_its_signature_tells(tmp_path):
    read = read_shard(shard(tmp_path))
    assert (read.number, read.count, read.begin, read.end, read.size) == (1, 2, 0, 50, 90)
    assert (read.lines, read.rejected, read.old_columns, read.factors) == (10, 2, 4, (1, 1))
    assert read.counts.of_column(0)["unknown_share"] == 0.3


@pytest.mark.parametrize(
    "changes",
    [
        {"shard": None},
        {"shard": {}},
        {"shard": SHARD | {"number": "x"}},
        {"shard": SHARD | {"number": 3}},
        {"shard": SHARD | {"end": 99}},
        {"shard": SHARD | {"begin": -1}},
        {"shard": SHARD | {"factors": 7}},
        {"shard": SHARD | {"identity": None}},
        {"file": None},
        {"file": {"bytes": "many", "sha256": ""}},
        {"lines": None},
        {"added_columns": [{"name": "RNN"}]},
        {"rejected_lines": []},
    ],
)
def test_what_is_no_signature_of_a_shard(tmp_path, changes):
    with pytest.raises(InputError, match=r"s.json: expected the signature of a shard"):
        read_shard(shard(tmp_path, **changes))


def test_the_whole_tables_signature(tmp_path):
    other = COLUMN | {"unknown": 1, "lowest": -12.0, "highest": -2.0}
    second = SHARD | {"number": 2, "begin": 50, "end": 90}
    empty = {"unknown": 0, "floored": 0, "lowest": None, "highest": None}
    shards = [
        read_shard(shard(tmp_path, "a")),
        read_shard(shard(tmp_path, "b", shard=second, added_columns=[other], lines=30)),
        read_shard(shard(tmp_path, "c", shard=second, added_columns=[COLUMN | empty], lines=0, rejected_lines=0)),
    ]
    record = json.loads(merged_signature(shards, {"output": "t.gz", "file": {"bytes": 1}}))
    (column,) = record["added_columns"]
    assert (record["lines"], record["rejected_lines"], record["merged_from"], record["output"]) == (40, 4, 3, "t.gz")
    assert [column[key] for key in ("unknown", "unknown_share", "floored", "lowest", "highest")] == [4, 0.1, 2, -12, -1]
    assert "shard" not in record
