"""moses-rnn analyse lengths: names of systems, rarity, and words that a network of the inverse direction knows."""

import os

import pytest

from tests.cli.analyse.calls import invoke
from tests.commands import run
from tests.translation.sentences import saved_model

SOURCE = ["s2 s3 s4 s5", "s9 s2", "s2 " * 10 + "s3"]
REFERENCE = ["t2 t3 t4 t5", "t2 t3", "t2 " * 10 + "t3"]


@pytest.fixture
def texts(tmp_path, monkeypatch):
    """Two folders with an output of the same name each, one of them right; their paths follow source and reference."""
    monkeypatch.chdir(tmp_path)
    for name, lines in {"src": SOURCE, "trg": REFERENCE, "a/out": REFERENCE, "b/out": REFERENCE[::-1]}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("".join(line + "\n" for line in lines))
    return ["src", "trg", "a/out", "b/out"]


def rows(*arguments):
    return [line.split(",") for line in invoke("lengths", *arguments, "--format", "csv").stdout.splitlines()]


def test_systems_are_named_by_their_files(texts):
    assert rows(*texts[:3])[2] == ["out", "100", "", "100", "", "", "", "100"]
    assert [row[0] for row in rows(*texts)[2:]] == ["a/out", "b/out"]


def test_an_inverse_model_knows_the_words_of_the_texts_the_other_way_round(texts, tmp_path):
    model = saved_model(tmp_path / "model", direction="target-to-source")
    header, counts, only = rows("trg", "src", "src", "--model", model)
    assert (header[-1], counts[-1], only[-1]) == ("No UNK", "2", "100")


def test_rarity_is_by_another_text(texts, tmp_path):
    (tmp_path / "train").write_text("s2 s3 s4 s5\ns2 s2 s2\n")
    header, counts, only = rows(*texts[:3], "--by-rarity", "train")
    assert header == ["system", "≤ 2", "> 2", "All"]
    assert counts == ["sentences", "1", "2", "3"]
    assert only == ["out", "100", "100", "100"]


def test_curves_depend_on_no_variable(texts, tmp_path):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib (the extra `report`)")
    variables = {"MPLBACKEND": "no_such_backend", "SOURCE_DATE_EPOCH": "no date"}
    invoke("lengths", *texts[:3], "-o", "a.svg")
    run("analyse", "lengths", *texts[:3], "-o", "b.svg", env={**os.environ, **variables})
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
