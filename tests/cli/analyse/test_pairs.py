"""moses-rnn analyse summary -o and prune: what is of phrase pairs."""

import hashlib
import json
import sys

import pytest

from moses_rnn.models.open import save_model
from moses_rnn.networks.encdec import SWITCHES
from moses_rnn.table.signatures import check_signature, read_signature
from tests.cli.analyse.calls import seen
from tests.cli.analyse.tables import SIGNATURE, with_another_score
from tests.models.pairs import SOURCE, TARGET
from tests.networks.checkpoints import encdec_checkpoint
from tests.networks.networks import encdec_network


def test_scatter_needs_matplotlib_for_pictures_alone(scored_table, tmp_path, monkeypatch):
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    done = seen("summary", scored_table, "-o", tmp_path / "s.png")
    assert (done.exit_code, "pip install 'moses-rnn[report]'" in done.stderr) == (1, True)
    assert not list(tmp_path.glob("*s.png*"))
    assert seen("summary", scored_table).exit_code == 0


def test_each_output_of_a_summary_is_written(scored_table, tmp_path):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib (the extra `report`)")
    names = ["s.csv", "s.svg", "other.csv"]
    done = seen("summary", scored_table, *[word for name in names for word in ("-o", tmp_path / name)])
    assert done.exit_code == 0, done.stderr
    cells, picture, others = ((tmp_path / name).read_bytes() for name in names)
    assert cells == others
    assert cells.count(b"\n") > 1
    assert b"seen more often" in picture  # points of two colours, as in the paper
    refused = seen("summary", scored_table, "-o", tmp_path / "new.csv", "-o", tmp_path / "s.csv")
    assert (refused.exit_code, "s.csv: already exists" in refused.stderr) == (1, True)
    assert not (tmp_path / "new.csv").exists()


def digest(path):
    return {"bytes": path.stat().st_size, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


@pytest.mark.parametrize("before", [SIGNATURE, None])
def test_a_pruned_table_has_a_signature_that_fits(scored_table, tmp_path, before):
    (tmp_path / "t.gz.json").unlink()
    if before:
        before = {**before, "file": digest(scored_table)}
        (tmp_path / "t.gz.json").write_text(json.dumps(before))
    column = [] if before else ["--column", 4]
    (tmp_path / "new.gz.json").write_text("of another table")
    refused = seen("prune", scored_table, "-o", tmp_path / "new.gz", "--keep", "0.5", *column)
    assert (refused.exit_code, "new.gz.json: already exists" in refused.stderr) == (1, True)
    assert not (tmp_path / "new.gz").exists()
    seen("prune", scored_table, "-o", tmp_path / "new.gz", "--keep", "0.5", "--by", "rnn", "--force", *column)
    assert "as written by moses_rnn" in check_signature(str(tmp_path / "new.gz"))
    found = read_signature(str(tmp_path / "new.gz")).record
    assert (found["lines"], found["columns"], found["input"], found["output"]) == (3, 5, "t.gz", "new.gz")
    assert found["pruned"] == [
        {"by": "rnn", "column": 4, "keep": 0.5, "keep_best": True, "keep_best_words": None, "lines_before": 6}
    ]
    columns = [(column["index"], column["name"], column["floor"]) for column in found["added_columns"]]
    assert columns == ([(4, "RNN", -87.0)] if before else [])
    assert found.get("models") == (SIGNATURE["models"] if before else None)
    seen("prune", tmp_path / "new.gz", "-o", tmp_path / "less.gz", "--keep", "0.9", "--keep-best-words", "0", *column)
    assert [one["lines_before"] for one in read_signature(str(tmp_path / "less.gz")).record["pruned"]] == [6, 3]


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        ({**SIGNATURE, "file": {"bytes": 1, "sha256": "0"}}, "expected 1 bytes, SHA-256 0… as in its signature, found"),
        ("odd", "t.gz.json: is not a signature of moses-rnn-score, and is not copied"),
    ],
)
def test_a_signature_that_does_not_fit_is_not_carried_over(scored_table, tmp_path, signature, message):
    (tmp_path / "t.gz.json").write_text(json.dumps(signature))
    done = seen("prune", scored_table, "-o", tmp_path / "new", "--keep", "0.5", "--column", "4")
    assert (done.exit_code, message in done.stderr) == (0, True), done.stderr
    assert read_signature(str(tmp_path / "new")).record["added_columns"] == []


def test_a_constant_criterion_is_said(tmp_path):
    with_another_score(tmp_path / "wide", {5: "RNN"})
    done = seen("prune", tmp_path / "wide", "-o", tmp_path / "new", "--keep", "0.5", "--keep-best-words", "0")
    assert "warning: 6 pairs are equally good at the threshold: 3 of them stay, spread evenly" in done.stderr


def test_an_overwritten_weight_counts(scored_table, tmp_path):
    ini = f"[feature]\nPhraseDictionaryMemory name=TM num-features=5 path={scored_table}\n[weight]\nTM= 1 0 0 0 0\n"
    (tmp_path / "i").write_text(ini)
    (tmp_path / "o").write_text(ini.replace("TM= 1 0 0 0 0", "TM= 0 0 1 0 0"))
    (tmp_path / "w").write_text(f"{ini}[weight-overwrite]\nTM= 0 0 1 x x\n")
    save_model(tmp_path / "m", encdec_checkpoint(encdec_network(SWITCHES["paper"]), SOURCE, TARGET))

    def sums(ini):
        done = seen("explain", scored_table, "e f g h ||| x", "--model", tmp_path / "m", "--moses-ini", tmp_path / ini)
        return [line.replace(f"/{ini}", "/") for line in done.stdout.splitlines() if "weighted sum" in line]

    assert sums("i") != sums("o") == sums("w") != []
