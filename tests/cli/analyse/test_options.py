"""What the subcommands of moses-rnn-analyse share: columns, signatures, models and tables in either order."""

import csv
import io
import json

import pytest

from moses_rnn.models.cells import ENCDEC_OF_CELLS
from moses_rnn.models.checkpoint import Checkpoint, save_checkpoint
from moses_rnn.models.cstm import CSTM
from tests.analysis.scored import line
from tests.cli.analyse.calls import invoke, seen
from tests.cli.analyse.tables import with_another_score
from tests.commands import run
from tests.models.networks import PAPERS, cell_network, cstm_network
from tests.producers.pairs import SOURCE, TARGET


def test_an_unscored_table_and_a_column_that_is_none_are_refused(table):
    done = run("analyse", "targets", table, check=False)
    assert done.returncode == 3
    assert "expected a scored table, found 4 scores\n  Score it with moses-rnn-score" in done.stderr
    for command in ("targets", "summary", "scatter"):
        done = seen(command, table, "--column", "9")
        assert "expected --column from 0 to 3, the scores of this table, found 9" in done.stderr


def test_the_score_is_the_one_that_the_signature_names(scored_table, tmp_path):
    with_another_score(tmp_path / "wide", {4: "RNN", 5: "WordPenalty"})
    (tmp_path / "link").symlink_to("wide")
    for command in (["targets", "--min-count", "0"], ["summary"], ["prune", "--keep", "0.5", "-o", tmp_path / "new"]):
        expected = seen(*command, scored_table, "--format", "csv", *["--force"] * (command[0] == "prune")).stdout
        assert expected.count("\n") > 2
        for name in ("wide", "link"):
            found = seen(*command, tmp_path / name, "--format", "csv", *["--force"] * (command[0] == "prune")).stdout
            assert found.split("\n")[:3] == expected.split("\n")[:3]
    assert json.loads((tmp_path / "new.json").read_text())["pruned"][0]["column"] == 4
    last = seen("summary", tmp_path / "wide", "--column", "-1", "--format", "csv").stdout
    assert last != seen("summary", tmp_path / "wide", "--format", "csv").stdout
    at_floor = [
        next(csv.DictReader(io.StringIO(seen("scatter", path, "--format", "csv").stdout)))["at the floor"]
        for path in (tmp_path / "wide", scored_table)
    ]
    assert at_floor == ["3", "0"]  # of which the signature says that it is -3


def test_a_signature_without_an_rnn_does_not_pass_for_one(tmp_path):
    with_another_score(tmp_path / "wide", {4: "RNNInverse", 5: "WordPenalty"})
    done = seen("targets", tmp_path / "wide")
    message = "wide: expected a score named RNN in its signature, found RNNInverse, WordPenalty\n  Say with --column"
    assert (done.exit_code, message in done.stderr) == (3, True), done.stderr
    assert seen("targets", tmp_path / "wide", "--column", "4").exit_code == 0


@pytest.mark.parametrize("command", ["targets", "summary", "scatter"])
def test_logarithms_are_refused(tmp_path, command):
    (tmp_path / "t").write_bytes(line("a b c d", "x", 0.7, -2.5, "9 200 140"))
    done = seen(command, tmp_path / "t")
    assert (done.exit_code, "t:1: expected a probability as score 5, found '-2.5'" in done.stderr) == (3, True)


# arguments behind model and table
EITHER_ORDER = [
    ["gates", "--phrases", 9],
    ["phrases", "--method", "pca", "--max-points", 9],
    ["explain", "a ||| b", "--phrases", 9],
]


@pytest.mark.parametrize("arguments", EITHER_ORDER, ids=lambda arguments: arguments[0])
def test_model_and_table_come_in_either_order(tmp_path, model, table, arguments):
    command, *rest = arguments
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    invoke(command, model, table, *rest, "-o", first)
    invoke(command, table, model, *rest, "-o", second)
    assert first.read_bytes() == second.read_bytes()


def test_networks_that_a_command_knows_nothing_of_are_named(scored_table, tmp_path):
    for name, kind, network in (
        ("cells", ENCDEC_OF_CELLS, cell_network(PAPERS["lstm"])),
        ("cstm", CSTM, cstm_network()),
    ):
        save_checkpoint(tmp_path / name, Checkpoint(kind, network, {"source": SOURCE, "target": TARGET}))
    done = invoke("gates", tmp_path / "cells", scored_table, code=3)
    assert "of the paper's gated units to look into, found RNN Encoder-Decoder of lstm cells" in done.stderr
    for command in (["words", tmp_path / "cstm"], ["report", scored_table, tmp_path / "cstm"]):
        done = invoke(*command, "-o", tmp_path / "out.csv", code=3)
        assert "cstm: expected a network that writes word by word, found: CSTM" in done.stderr
        assert not (tmp_path / "out.csv").exists()
    done = seen("words", tmp_path / "cstm", "--side", "target", "--export", tmp_path / "target.vec")
    assert "cstm: expected a network with embeddings of target words, found: CSTM" in done.stderr
    assert not list(tmp_path.glob("*target.vec*"))
