"""moses-rnn-analyse gates, words, phrases: what is looked at in a model."""

import csv
import io
import json

import pytest

from tests.cli.analyse.calls import invoke


def rows_of(path):
    return list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"))))


@pytest.mark.parametrize("network", ["encoder", "decoder"])
def test_gates(tmp_path, table, model, network):
    out = tmp_path / "gates.csv"
    done = invoke("gates", model, table, "--network", network, "--phrases", 50, "-o", out)
    assert done.stdout.startswith(f"{network}: 8 units, 50 phrases, ")
    assert len(rows_of(out)) == 1 + 8
    again = invoke("gates", model, table, "--network", network, "--phrases", 50)
    assert again.stdout == done.stdout
    assert "exists already" in invoke("gates", model, table, "-o", out, code=1).stderr


def test_an_inverse_model_reads_targets(table, inverse_model):
    done = invoke("gates", inverse_model, table, "--phrases", 20, "--min-times", 1)
    assert done.stdout.startswith("encoder: 8 units, 20 phrases, ")


def test_words_and_phrases(tmp_path, table, model):
    pytest.importorskip("matplotlib", reason="pictures are matplotlib's")
    pytest.importorskip("sklearn", reason="t-SNE is scikit-learn's")
    outputs = [argument for kind in ("svg", "png", "csv", "json") for argument in ("-o", tmp_path / f"words.{kind}")]
    invoke("words", model, "--max-points", 30, "--method", "pca", *outputs)
    assert (tmp_path / "words.svg").read_bytes().startswith(b"<?xml")
    assert (tmp_path / "words.png").read_bytes().startswith(b"\x89PNG")
    assert len(json.loads((tmp_path / "words.json").read_bytes())["labels"]) == 30
    done = invoke("phrases", model, table, "--max-points", 40, "-o", tmp_path / "phrases.csv")
    assert done.stdout.startswith("source phrases, tsne: 39 points")  # two differ in unknown words only
    labels = [row[0] for row in rows_of(tmp_path / "phrases.csv")][1:]
    assert len(labels) == 39
    assert all(len(label.split()) >= 4 for label in labels)


def test_words_are_exported_without_a_map_or_with_one(tmp_path, model):
    done = invoke("words", model, "--export", tmp_path / "source.vec")
    assert done.stdout == ""
    header, *rows = (tmp_path / "source.vec").read_bytes().splitlines()
    vocabulary = (model / "source.vocab").read_bytes().splitlines()[2:]
    assert header.split()[0] == b"%d" % len(vocabulary)
    assert [row.split()[0] for row in rows] == vocabulary
    assert {len(row.split()) for row in rows} == {1 + int(header.split()[1])}
    assert "exists already" in invoke("words", model, "--export", tmp_path / "source.vec", code=1).stderr
    map_ = "-o", tmp_path / "words.csv", "--method", "pca"
    both = invoke("words", model, "--side", "target", "--export", "-", *map_)
    assert both.stdout.encode().splitlines()[1].startswith((model / "target.vocab").read_bytes().splitlines()[2] + b" ")
    assert (tmp_path / "words.csv").exists()
    assert "'-o' / '--output', or --export" in invoke("words", model, code=2).stderr


# arguments behind model and table; exit code, the message
REFUSED = [
    (["explain", "no pair"], 3, "expected a pair as 'source ||| target', found 'no pair'"),
    (["explain", "a ||| b", "--moses-ini", "none.ini"], 3, "none.ini: expected a file, found nothing of that name"),
    (["explain", "a ||| b", "--table-limit", "3"], 2, "--table-limit and --feature are about a --moses-ini"),
    (["phrases", "-o", "x.gif"], 2, "--output x.gif: expected a name that ends with .svg, .png, .csv or .json"),
    (["phrases", "-o", "x.csv", "-o", "./x.csv"], 1, "./x.csv: is where x.csv goes; name another output"),
    (["phrases", "-o", "x.csv", "--method", "pca", "--min-words", "99"], 3,
     "expected phrases of 99 or more words in the table, found none"),
    (["gates", "--network", "both"], 2, "'both' is not one of"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "code", "message"), REFUSED)
def test_what_is_refused(tmp_path, monkeypatch, table, model, arguments, code, message):
    monkeypatch.chdir(tmp_path)
    command, *rest = arguments
    done = invoke(command, model, table, *rest, code=code)
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_phrases_of_another_form_are_refused(tmp_path, model):
    rules = tmp_path / "rules"
    rules.write_text("a [X][X] [X] ||| b [X][X] [X] ||| .1 .1 .1 .1 ||| 1-1\n")
    done = invoke("gates", model, rules, code=3)
    assert "expected phrases as the model learned from (plain words), found hierarchical" in done.stderr
