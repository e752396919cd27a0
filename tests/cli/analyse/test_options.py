"""What the subcommands of moses-rnn-analyse share: columns, signatures, models and tables in either order."""

import csv
import io
import json

import pytest

from tests.cli.analyse.calls import invoke, seen
from tests.cli.analyse.tables import with_another_score


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
