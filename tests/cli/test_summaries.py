"""--json: what a command prints for people, for programs."""

import gzip
import itertools
import json

import pytest

from moses_rnn.cli.command import put_json
from moses_rnn.cli.verify import verification_record
from moses_rnn.moses.decoder import Comparison
from tests.commands import run
from tests.conftest import LEARNED, TINY


def test_numbers_that_json_does_not_know_are_null(capfd):
    put_json({"a": [float("inf"), 0.5], "b": {"c": float("nan")}, "d": "é\udcff"})
    assert capfd.readouterr().out == '{"a": [null, 0.5], "b": {"c": null}, "d": "\\u00e9\\udcff"}\n'


def test_a_scoring_run(table, model, tmp_path):
    done = run("score", table, "--model", model, "-o", tmp_path / "scored.gz", "--json")
    record = json.loads(done.stdout)
    assert record["lines"] == 3000
    assert record["output"] == str(tmp_path / "scored.gz")
    assert record["signature"] == f"{tmp_path}/scored.gz.json"
    (column,) = record["columns"]
    assert column["name"] == "RNN"
    assert column["lowest"] < column["highest"] <= 0
    assert 0 <= column["unknown_share"] <= 1
    assert "num-features=5" in record["feature"]
    assert record["weight"].startswith("TranslationModel0= ")
    assert "lines in and out" not in done.stderr
    assert set(record) == {
        *("table", "output", "signature", "ini", "lines", "rejected", "computed_by", "columns", "feature", "weight", "warnings")
    }  # fmt: skip


def test_a_training_on_plain_pairs(table, tmp_path):
    """Of the same pairs as plain lines comes the same network."""
    with gzip.open(table, "rt", encoding="utf-8") as lines:
        rows = [line.split(" ||| ") for line in itertools.islice(lines, 1000)]
    (tmp_path / "pairs.tsv").write_text("".join(f"{row[0]}\t{row[1]}\n" for row in rows))
    (tmp_path / "table").write_text("".join(f"{row[0]} ||| {row[1]} ||| 1 1 1 1\n" for row in rows))
    records = []
    for name, layout in (("pairs.tsv", "tsv"), ("table", "moses")):
        options = ["--format", layout, "--model", tmp_path / layout, *TINY, *LEARNED, "--quiet", "--json"]
        records.append(json.loads(run("train", tmp_path / name, *options, "--device", "cpu").stdout))
    assert records[0]["best_cost"] == records[1]["best_cost"]
    assert records[0]["model"] == str(tmp_path / "tsv")
    assert records[0]["pairs"] > 0
    assert records[0]["verdict_text"].startswith(records[0]["verdict"] + ": ")
    assert set(records[0]) == {
        *("model", "finished", "pairs", "steps", "seconds", "best_cost", "rival_cost", "unit", "verdict", "verdict_text", "warnings")
    }  # fmt: skip


def test_what_a_decoder_saw():
    pair = b"a", b"b"
    good, bad = (
        Comparison("text", 3, 12, 1e-7),
        Comparison("compact", 3, 12, missing=[pair], wrong=[(pair, (0,), (1,))]),
    )
    record = verification_record("t", [], [good, bad])
    assert not record["good"]
    assert [(kind["kind"], kind["good"], kind["missing"], kind["wrong"]) for kind in record["kinds"]] == [
        ("text", True, 0, 0),
        ("compact", False, 1, 1),
    ]


@pytest.mark.moses
def test_a_decoders_dictionary(moses_root, table):
    done = run("verify", table, "--kind", "text", "--sources", "2", "--json")
    (kind,) = json.loads(done.stdout)["kinds"]
    assert kind["good"]
    assert kind["pairs"] > 0
