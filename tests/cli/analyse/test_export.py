"""moses-rnn-analyse export: the same rows in every form."""

import gzip
import json

import moses_rnn
from tests.commands import run


def export(table, output, *options, check=True):
    return run("analyse", "export", table, "-o", output, *options, check=check)


def test_rows_with_tabs_between(scored_table, tmp_path):
    export(scored_table, tmp_path / "rows.tsv.gz")
    with gzip.open(tmp_path / "rows.tsv.gz", "rt") as lines:
        header, *rows = [line.rstrip("\n").split("\t") for line in lines]
    table = list(moses_rnn.read_table(scored_table))
    assert tuple(header) == moses_rnn.read_table(scored_table).columns
    assert [row[:3] for row in rows] == [[row.source, row.target, row.alignment] for row in table]
    assert [tuple(map(float, row[3:])) for row in rows] == [(*row.scores, *row.counts) for row in table]


def test_an_object_a_line(scored_table, tmp_path):
    export(scored_table, tmp_path / "rows.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert len(rows) == 6
    assert rows[1]["target"] == "y&#124;z"
    assert list(rows[0]) == list(moses_rnn.read_table(scored_table).columns)


def test_odd_bytes(tmp_path):
    (tmp_path / "t").write_bytes(b"a ||| \xff ||| 1 1 1 1\n")
    export(tmp_path / "t", tmp_path / "t.tsv")
    assert (tmp_path / "t.tsv").read_bytes().split(b"\n")[1].startswith(b"a\t\xff\t\t1\t1")
    export(tmp_path / "t", tmp_path / "t.jsonl")
    assert json.loads((tmp_path / "t.jsonl").read_text())["target"] == "\\xff"
