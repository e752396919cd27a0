"""moses-rnn analyse gates, map words and phrases: what is looked at in a model."""

import csv
import io
import json

import pytest

from tests.cli.analyse.calls import invoke


def rows_of(path):
    return list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"))))


def test_an_inverse_model_reads_targets(table, inverse_model):
    done = invoke("gates", inverse_model, table, "--phrases", 20)
    assert done.stdout.startswith("encoder: 8 units, 20 phrases, ")


def test_words_and_phrases(tmp_path, table, model):
    pytest.importorskip("matplotlib", reason="pictures are matplotlib's")
    pytest.importorskip("sklearn", reason="t-SNE is scikit-learn's")
    outputs = [argument for kind in ("svg", "png", "csv", "json") for argument in ("-o", tmp_path / f"words.{kind}")]
    invoke("map", "words", model, "--max-points", 30, "--method", "pca", *outputs)
    assert (tmp_path / "words.svg").read_bytes().startswith(b"<?xml")
    assert (tmp_path / "words.png").read_bytes().startswith(b"\x89PNG")
    assert len(json.loads((tmp_path / "words.json").read_bytes())["labels"]) == 30
    done = invoke("map", "phrases", model, table, "--max-points", 40, "-o", tmp_path / "phrases.csv")
    assert done.stdout.startswith("source phrases, tsne: 39 points")  # two differ in unknown words only
    labels = [row[0] for row in rows_of(tmp_path / "phrases.csv")][1:]
    assert len(labels) == 39
    assert all(len(label.split()) >= 4 for label in labels)


def test_words_are_exported_without_a_map_or_with_one(tmp_path, model):
    done = invoke("map", "words", model, "--export", tmp_path / "source.vec")
    assert done.stdout == ""
    header, *rows = (tmp_path / "source.vec").read_bytes().splitlines()
    vocabulary = (model / "source.vocab").read_bytes().splitlines()[2:]
    assert header.split()[0] == b"%d" % len(vocabulary)
    assert [row.split()[0] for row in rows] == vocabulary
    assert {len(row.split()) for row in rows} == {1 + int(header.split()[1])}
    assert "exists already" in invoke("map", "words", model, "--export", tmp_path / "source.vec", code=1).stderr
    map_ = "-o", tmp_path / "words.csv", "--method", "pca"
    both = invoke("map", "words", model, "--side", "target", "--export", "-", *map_)
    assert both.stdout.encode().splitlines()[1].startswith((model / "target.vocab").read_bytes().splitlines()[2] + b" ")
    assert (tmp_path / "words.csv").exists()
    assert "'-o' / '--output', or --export" in invoke("map", "words", model, code=2).stderr
