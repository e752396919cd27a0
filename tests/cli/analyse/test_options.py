"""What the subcommands of moses-rnn analyse share: columns, signatures, the model beside a table, odd words."""

import csv
import io
import re
from pathlib import Path

import pytest

from tests.analysis.scored import sign
from tests.cli.analyse.calls import invoke, seen
from tests.cli.analyse.tables import with_another_score
from tests.commands import run


def test_a_link_has_the_signature_of_its_table_and_the_floor_is_the_recorded_one(scored_table, tmp_path):
    with_another_score(tmp_path / "wide", {4: "RNN", 5: "WordPenalty"})
    (tmp_path / "link").symlink_to("wide")
    at_floor = []
    for path in (tmp_path / "link", scored_table):
        text = seen("summary", path, "--format", "csv", "-o", path.with_suffix(".csv")).stdout.partition("\n\n")[2]
        at_floor.append(next(csv.DictReader(io.StringIO(text)))["at the floor"])
    assert at_floor == ["3", "0"]  # of which the signature says that it is -3


SCORES = b"a ||| x ||| %s\na ||| y ||| %s\na ||| z ||| %s\n"
TWO = SCORES % (b"1 .5 .1", b"1 .3 .7", b"1 .2 .2")  # of which the second is p(target|source)
FIVE = SCORES % (b".1 .1 .5 .1 .1", b".1 .1 .3 .1 .7", b".1 .1 .2 .1 .2")
SIX = SCORES % (b".1 .1 .5 .1 2.718 .1", b".1 .1 .3 .1 2.718 .7", b".1 .1 .2 .1 2.718 .2")
SEVEN = SCORES % (b".1 .1 .5 .1 .1 .9 2", b".1 .1 .3 .1 .7 .5 2", b".1 .1 .2 .1 .2 .1 2")
MEAN = "mean of 2 models' log p(target | source) of the RNN Encoder-Decoder, natural, both </s> included"
# the table, what its signature names, --column; the best target by the network, and whether p(target|source) is known
COLUMNS = {
    "two of its own": (TWO, {2: "RNN"}, None, b"y", False),
    "two of its own, no signature": (TWO, {}, 2, b"y", False),
    "two of its own, scored twice": (SCORES % (b"1 .5 .1 .8", b"1 .3 .7 .1", b"1 .2 .2 .1"), {2: "RNN", 3: "RNNInverse"}, None, b"y", False),
    "a count after the four": (SIX, {5: "RNN"}, None, b"y", True),
    "an inverse first": (SEVEN, {4: "RNNInverse", 5: "RNN", 6: "WordPenalty"}, None, b"x", True),
    "another network": (SEVEN, {4: {"name": "ENS", "meaning": MEAN}, 6: "WordPenalty"}, None, b"y", True),
    "two networks and --column": (SEVEN, {4: "RNN", 5: "RNN"}, 5, b"x", True),
}  # fmt: skip


def best_of(path, *arguments):
    done = seen("prune", path, "-o", f"{path}.new", "--keep", "0.3", "--keep-best-words", "0", "--force", *arguments)
    return done.exit_code, Path(f"{path}.new").read_bytes().split(b" ||| ")[1] if done.exit_code == 0 else done.stderr


@pytest.mark.parametrize(("table", "names", "column", "best", "known"), COLUMNS.values(), ids=COLUMNS)
def test_columns_are_those_of_the_signature(tmp_path, table, names, column, best, known):
    path = tmp_path / "t"
    path.write_bytes(table)
    if names:
        sign(path, names)
    given = [] if column is None else ["--column", column]
    assert best_of(path, "--by", "rnn", *given) == (0, best)
    code, direct = best_of(path, "--by", "direct", *given)
    targets = seen("targets", path, "--source", "a", "--top", 1, "--format", "csv", *given)
    codes = {code, targets.exit_code, seen("summary", path, *given).exit_code}
    if known:
        assert (codes, direct) == ({0}, b"x")
        assert targets.stdout.endswith(f",x,0.5,{best.decode()},{0.9 if best == b'x' else 0.7}\n")
    else:
        assert (codes, "with p(target|source) as number 3" in direct) == ({3}, True)


# the table, what its signature names (None: it has none), what happens to the table, what the message says
UNKNOWN = {
    "no signature": (FIVE, None, b"", "t: expected a scored table and its signature, "),
    "no network": (SEVEN, {4: "RNNInverse", 5: "WordPenalty"}, b"", "found RNNInverse as score 5, WordPenalty as score 6"),
    "two models": (SEVEN, {4: "RNN", 5: "RNN"}, b"", "found RNN as score 5, RNN as score 6"),
    "a number that is none": (FIVE, {"4": "RNN"}, b"", "expected one score named RNN in its signature, found none"),
    "changed": (FIVE, {4: "RNN"}, b"b ||| x ||| .1 .1 .5 .1 .1\n", "as in its signature, found"),
}  # fmt: skip


@pytest.mark.parametrize(("table", "names", "change", "message"), UNKNOWN.values(), ids=UNKNOWN)
def test_without_a_signature_that_says_so_no_column_is_the_networks(tmp_path, table, names, change, message):
    path = tmp_path / "t"
    path.write_bytes(table)
    if names is not None:
        sign(path, names)
    path.write_bytes(table + change)
    for command in (["targets"], ["summary"], ["prune", "--keep", 0.5, "-o", tmp_path / "new"]):
        done = seen(*command, path)
        assert (done.exit_code, message in done.stderr, "--column" in done.stderr) == (3, True, True), done.stderr
    assert best_of(path, "--column", 4)[0] == 0


@pytest.mark.parametrize("name", ["t.gz", "t.rnn.gz"])
def test_the_model_beside_the_table_is_the_default(tmp_path, model, table, name):
    for path, target in ((tmp_path / name, table), (tmp_path / "t.rnn-model", model)):
        path.symlink_to(target)
    named = invoke("map", "gates", table, "--model", model)
    assert invoke("map", "gates", tmp_path / name).stdout == named.stdout


def test_an_inverse_model_reads_targets(table, inverse_model):
    done = invoke("map", "gates", table, "--model", inverse_model)
    assert done.stdout.startswith("encoder: 8 units, 2,000 phrases, ")


def test_csv_keeps_odd_bytes(tmp_path):
    (tmp_path / "t").write_bytes(b"a ||| \xff\xc2\xa0 ||| 1 1 1 1 1\n")
    data = seen("targets", tmp_path / "t", "--source", "a", "--format", "csv", "--column", 4).stdout_bytes
    assert b",\xff\xc2\xa0,1,\xff\xc2\xa0,1\n" in data


def test_sources_that_are_not_there_are_said(scored_table):
    done = seen("targets", scored_table, "--source", " e  f g h", "--source", "zzz")
    assert done.exit_code == 0
    assert "t.gz: has no source phrase 'zzz'\n" in done.stderr
    assert "e f g h   (seen 3 times, 3 targets)" in done.stdout


def rows_of(done):
    return [*csv.DictReader(io.StringIO(done.stdout))]


def test_samples_stand_beside_the_best_targets(scored_table, tmp_path, model, inverse_model):
    chosen = ["--source", "a b c d", "--source", "e f g h", "--top", 2, "--column", 4]
    rows = rows_of(invoke("targets", scored_table, *chosen, "--model", model, "--format", "csv"))
    drawn = run("sample", "--model", model, "--source", "a b c d", "--source", "e f g h", "--top", 2, "--format", "tsv")
    assert [row["sample"] for row in rows] == [line.split("\t")[2] for line in drawn.stdout.splitlines()[1:]]
    text = invoke("targets", scored_table, *chosen, "--model", model).stdout
    assert re.findall("    sample    (.*)", text) == [row["sample"] for row in rows]
    assert "sample" not in invoke("targets", scored_table, *chosen, "--format", "csv").stdout
    refused = seen("targets", scored_table, "--model", inverse_model)
    assert (refused.exit_code, "expected a model of direction source-to-target" in refused.stderr) == (3, True)


def test_a_source_with_fewer_targets_than_samples_has_a_row_for_each(tmp_path, model):
    (tmp_path / "t").write_bytes(b"a ||| b ||| 1 1 .5 1 .25\n")
    rows = rows_of(
        invoke("targets", tmp_path / "t", "--source", "a", "--column", 4, "--model", model, "--format", "csv")
    )
    assert [(row["rank"], row["by RNN"], bool(row["sample"])) for row in rows] == [
        ("1", "b", True),
        ("2", "", True),
        ("3", "", True),
    ]


def test_neighbours_are_words_or_phrases_of_a_table(table, model):
    words = rows_of(invoke("neighbours", model, "the", "in", "--count", 2, "--format", "csv"))
    assert [row["nearest to"] for row in words] == ["the", "the", "in", "in"]
    assert all(row["neighbour"] != row["nearest to"] for row in words)
    phrases = rows_of(invoke("neighbours", model, "in  the", "--table", table, "--count", 3, "--format", "csv"))
    assert [row["nearest to"] for row in phrases] == ["in the"] * 3
    cosines = [float(row["cosine"]) for row in phrases]
    assert cosines == sorted(cosines, reverse=True)
    refused = seen("neighbours", model, "the", "--table", table, "--side", "target")
    assert (refused.exit_code, "--side is for words" in refused.stderr) == (2, True)
