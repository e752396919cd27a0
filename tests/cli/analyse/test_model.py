"""moses-rnn analyse map words, phrases and gates: what is looked at in a model."""

import json

import pytest

from tests.cli.analyse.calls import invoke


def test_an_inverse_model_reads_targets(table, inverse_model):
    done = invoke("map", "gates", table, "--model", inverse_model)
    assert done.stdout.startswith("encoder: 8 units, 2,000 phrases, ")


def test_words_and_phrases(tmp_path, table, model):
    pytest.importorskip("matplotlib", reason="pictures are matplotlib's")
    pytest.importorskip("sklearn", reason="t-SNE is scikit-learn's")
    outputs = [argument for kind in ("svg", "png", "csv", "json") for argument in ("-o", tmp_path / f"words.{kind}")]
    invoke("map", "words", "--model", model, "--side", "target", "--method", "pca", *outputs)
    assert (tmp_path / "words.svg").read_bytes().startswith(b"<?xml")
    assert (tmp_path / "words.png").read_bytes().startswith(b"\x89PNG")
    assert len(json.loads((tmp_path / "words.json").read_bytes())["labels"]) == 60
    done = invoke("map", "phrases", table, "--model", model, "--min-words", 5, "-o", tmp_path / "phrases.csv")
    assert done.stdout.startswith("source phrases, tsne: ")


def test_all_words_are_exported(model):
    done = invoke("map", "words", "--model", model, "--side", "target", "--export", "-")
    header, *rows = done.stdout.encode().splitlines()
    vocabulary = (model / "target.vocab").read_bytes().splitlines()[2:]
    assert header.split()[0] == b"%d" % len(vocabulary)
    assert [row.split()[0] for row in rows] == vocabulary
    assert {len(row.split()) for row in rows} == {1 + int(header.split()[1])}
