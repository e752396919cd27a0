import csv
import gzip
import hashlib
import io
import json
import shutil
import sys

import pytest

from moses_rnn.formats.signatures import read_signature
from moses_rnn.formats.validation import check_signature
from tests.analysis.scored import line
from tests.commands import run

TABLE = [
    line("a b c d", "x", 0.7, 0.2, "9 200 140"),
    line("a b c d", "y|z".replace("|", "&#124;"), 0.2, 0.6, "9 200 40"),
    line("a b c d", "50 %", 0.1, 0.1, "9 200 20"),
    line("e f g h", "x", 0.4, 0.01, "9 3 1"),
    line("e f g h", "y", 0.3, 0.02, "9 3 1"),
    line("e f g h", "z", 0.3, 0.03, "9 3 1"),
]


def seen(*arguments):
    """The command within this process, which spares starting one."""
    from click.testing import CliRunner

    from moses_rnn.cli.analyse import main

    return CliRunner().invoke(main, [*map(str, arguments)])


@pytest.fixture
def scored_table(tmp_path):
    (tmp_path / "t.gz").write_bytes(gzip.compress(b"".join(TABLE)))
    return tmp_path / "t.gz"


def test_targets_before_and_after(tmp_path, table, model):
    scored = tmp_path / "t.gz"
    run("score", table, "--model", model, "-o", scored)
    done = run("analyse", "targets", scored, "--count", "2", "--top", "2", "--choose", "frequent", "--min-words", "3")
    title, _, text = done.stdout.partition("\n\n")
    assert title.startswith("Long, frequent source phrases (at least 3 words, at least 2 targets; 2 of ")
    assert text.count("p(target|source)") == 2
    one = run("analyse", "targets", scored, "--source", text.split("   (seen", maxsplit=1)[0], "--top", "2")
    assert text.startswith(one.stdout.removesuffix("\n"))
    assert one.stderr == ""  # progress is for terminals


def test_frequent_and_rare_sources(scored_table):
    text = seen("targets", scored_table).stdout
    assert "a b c d   (seen 200 times, 3 targets)" in text
    assert text.index("Long, frequent") < text.index("Long, rare") < text.rindex("e f g h   (seen 3 times, 3 targets)")
    rare = seen("targets", scored_table, "--choose", "rare").stdout
    assert "a b c d" not in rare
    frequent = seen("targets", scored_table, "--choose", "frequent", "--min-count", "100").stdout
    assert "e f g h" not in frequent
    assert "seen at least 100 times; 1 of 1, drawn with seed 1)" in frequent


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ("markdown", "| 2 | y\\&\\#124;z | 0.2 | x | 0.2 |"),
        ("latex", r"& 3 & 50 \% & 0.1 & 50 \% & 0.1 \\"),
        ("csv", '"Long, frequent source phrases",a b c d,200,3,2,y&#124;z,0.2,x,0.2\n'),
    ],
)
def test_targets_in_other_formats(scored_table, layout, expected):
    assert expected in seen("targets", scored_table, "--format", layout).stdout


def test_csv_keeps_odd_bytes(tmp_path):
    (tmp_path / "t").write_bytes(b"a ||| \xff\xc2\xa0 ||| 1 1 1 1 1\n")
    data = seen("targets", tmp_path / "t", "--source", "a", "--format", "csv").stdout_bytes
    assert b",\xff\xc2\xa0,1,\xff\xc2\xa0,1\n" in data


def test_nothing_found_is_an_error(tmp_path, table):
    shutil.copy(table, tmp_path)
    path = tmp_path / "phrase-table"
    done = run("analyse", "targets", path, "--source", "no such phrase", "--column", "3", check=False)
    assert done.returncode == 3
    assert "phrase-table.gz: expected source phrases 'no such phrase', found none" in done.stderr
    done = seen("targets", path, "--min-words", "99", "--column", "3")
    assert done.exit_code == 3
    assert "expected source phrases of at least 99 words, at least 3 targets; or at least 99 words" in done.stderr


def test_an_unscored_table_and_a_column_that_is_none_are_refused(table):
    done = run("analyse", "targets", table, check=False)
    assert done.returncode == 3
    assert "expected a scored table, found 4 scores\n  Score it with moses-rnn-score" in done.stderr
    for command in ("targets", "summary", "scatter"):
        done = seen(command, table, "--column", "9")
        assert "expected --column from 0 to 3, the scores of this table, found 9" in done.stderr


def test_summary(scored_table):
    text = seen("summary", scored_table).stdout
    assert text.startswith("Preferences among the targets of a source\n")
    assert "Spearman correlation of score and pair count over 6 pairs" in text
    rows = list(csv.DictReader(io.StringIO(seen("summary", scored_table, "--format", "csv").stdout)))
    assert [(row["sources"], row["number"], row["agree"]) for row in rows] == [
        ("all", "2", "0"),
        ("seen 2–9 times", "1", "0"),
        ("seen 10 times or more", "1", "0"),
    ]


def test_scatter(scored_table, tmp_path):
    text = seen("scatter", scored_table, "-o", tmp_path / "s.csv").stdout
    assert text.startswith("Correlation of log p(target|source) and the RNN's log p\n")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "s.csv").read_text())))
    assert sum(int(row["pairs"]) for row in rows) == 6
    again = seen("scatter", scored_table, "-o", tmp_path / "s.csv")
    assert (again.exit_code, "s.csv: exists already; use --force" in again.stderr) == (1, True)
    wrong = seen("scatter", scored_table, "-o", "s.pdf")
    assert (wrong.exit_code, "does not end in .svg, .png or .csv" in wrong.stderr) == (2, True)


def test_scatter_needs_matplotlib_for_pictures_alone(scored_table, tmp_path, monkeypatch):
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    done = seen("scatter", scored_table, "-o", tmp_path / "s.png")
    assert (done.exit_code, "pip install 'moses-rnn[plot]'" in done.stderr) == (1, True)
    assert not list(tmp_path.glob("*s.png*"))
    assert seen("scatter", scored_table).exit_code == 0


def test_scatter_draws(scored_table, tmp_path):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib (the extra `plot`)")
    assert seen("scatter", scored_table, "-o", tmp_path / "s.png").exit_code == 0
    assert (tmp_path / "s.png").read_bytes().startswith(b"\x89PNG")


def test_prune(scored_table, tmp_path):
    new, gone = tmp_path / "new.gz", tmp_path / "gone"
    done = seen("prune", scored_table, "-o", new, "--keep", "0.5", "--by", "rnn", "--rejects", gone, "--format", "csv")
    kept = gzip.decompress(new.read_bytes()).splitlines(keepends=True)
    assert kept == [TABLE[0], TABLE[1], TABLE[5]]
    assert gone.read_bytes().splitlines(keepends=True) == [TABLE[2], TABLE[3], TABLE[4]]
    assert done.stdout.split("\n")[1:3] == ["lines,6,3,3,50.0%", "sources,2,2,0,100.0%"]
    done = seen("prune", scored_table, "-o", new, "--keep", "0.1", "--no-keep-best", "--force")
    assert gzip.decompress(new.read_bytes()) == TABLE[1] or gzip.decompress(new.read_bytes()) == TABLE[0]
    assert "warning: 1 sources lost all their targets" in done.stderr
    done = seen(
        "prune", scored_table, "-o", tmp_path / "words", "--keep", "0.5", "--by", "rnn", "--keep-best-words", "1"
    )
    assert "warning: 1 sources lost all their targets" in done.stderr
    done = seen("prune", scored_table, "-o", new, "--keep", "0.5", "--keep-best-words", "1", "--no-keep-best")
    assert (done.exit_code, "--keep-best-words and --no-keep-best exclude each other" in done.stderr) == (2, True)


SIGNATURE = {
    "program": "moses_rnn 0.0.1",
    "precision": "fp32",
    "lines": 6,
    "columns": 5,
    "added_columns": [{"index": 4, "name": "RNN", "floor": -87.0, "floored": 1, "lowest": -87.0, "highest": -1.0}],
    "models": [{"direction": "source-to-target", "sha256": {}}],
}


def digest(path):
    return {"bytes": path.stat().st_size, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


@pytest.mark.parametrize("before", [SIGNATURE, None])
def test_a_pruned_table_has_a_signature_that_fits(scored_table, tmp_path, before):
    if before:
        before = {**before, "file": digest(scored_table)}
        (tmp_path / "t.gz.json").write_text(json.dumps(before))
    (tmp_path / "new.gz.json").write_text("of another table")
    refused = seen("prune", scored_table, "-o", tmp_path / "new.gz", "--keep", "0.5")
    assert (refused.exit_code, "new.gz.json: exists already" in refused.stderr) == (1, True)
    assert not (tmp_path / "new.gz").exists()
    seen("prune", scored_table, "-o", tmp_path / "new.gz", "--keep", "0.5", "--by", "rnn", "--force")
    assert "as written by moses_rnn" in check_signature(str(tmp_path / "new.gz"))
    found = read_signature(str(tmp_path / "new.gz"))
    assert (found["lines"], found["columns"], found["input"], found["output"]) == (3, 5, "t.gz", "new.gz")
    assert found["pruned"] == [
        {"by": "rnn", "column": 4, "keep": 0.5, "keep_best": True, "keep_best_words": None, "lines_before": 6}
    ]
    assert found["added_columns"] == ([{"index": 4, "name": "RNN", "floor": -87.0}] if before else [])
    assert found.get("models") == (SIGNATURE["models"] if before else None)
    seen("prune", tmp_path / "new.gz", "-o", tmp_path / "less.gz", "--keep", "0.9", "--no-keep-best")
    assert [one["lines_before"] for one in read_signature(str(tmp_path / "less.gz"))["pruned"]] == [6, 3]


@pytest.mark.parametrize(
    ("output", "rejects", "message"),
    [
        ("t.gz", "gone", "t.gz: is the input"),
        ("new", "new", "new: is where"),
        ("new", "t.gz", "t.gz: is the input"),
        ("no/new", "gone", "no/new: cannot be written: No such file or directory"),
    ],
)
def test_outputs_that_cannot_be(scored_table, tmp_path, output, rejects, message):
    done = seen(
        "prune", scored_table, "-o", tmp_path / output, "--rejects", tmp_path / rejects, "--keep", 0.5, "--force"
    )
    assert (done.exit_code, message in done.stderr) == (1, True)
    assert [path.name for path in tmp_path.iterdir()] == ["t.gz"]


def test_a_table_that_is_refused_leaves_no_output(tmp_path):
    (tmp_path / "t").write_bytes(b"".join(reversed(TABLE)))
    done = seen("prune", tmp_path / "t", "-o", tmp_path / "new", "--keep", "0.5", "--rejects", tmp_path / "gone")
    assert done.exit_code == 3
    assert "t:4: expected sources in the order of LC_ALL=C sort" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["t"]


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        ({**SIGNATURE, "file": {"bytes": 1, "sha256": "0"}}, "expected 1 bytes, SHA-256 0… as in its signature, found"),
        ("odd", "t.gz.json: is not a signature of moses-rnn-score, and is not carried over"),
    ],
)
def test_a_signature_that_does_not_fit_is_not_carried_over(scored_table, tmp_path, signature, message):
    (tmp_path / "t.gz.json").write_text(json.dumps(signature))
    done = seen("prune", scored_table, "-o", tmp_path / "new", "--keep", "0.5", "--column", "4")
    assert (done.exit_code, message in done.stderr) == (0, True), done.stderr
    assert read_signature(str(tmp_path / "new"))["added_columns"] == []


def with_another_score(path, names):
    """The table with a constant score after the RNN's, and a signature."""
    wider = [one.replace(b" ||| 0-0", b" 1 ||| 0-0") for one in TABLE]
    assert wider != TABLE
    path.write_bytes(b"".join(wider))
    columns = [{"index": index, "name": name, "floor": -3} for index, name in names.items()]
    path.with_name(path.name + ".json").write_text(json.dumps({**SIGNATURE, "columns": 6, "added_columns": columns}))


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


def test_a_constant_criterion_is_said(tmp_path):
    with_another_score(tmp_path / "wide", {5: "RNN"})
    done = seen("prune", tmp_path / "wide", "-o", tmp_path / "new", "--keep", "0.5", "--no-keep-best")
    assert "warning: 6 pairs are equally good at the threshold: 3 of them stay, spread evenly" in done.stderr


def test_sources_that_are_not_there_are_said(scored_table):
    done = seen("targets", scored_table, "--source", " e  f g h", "--source", "zzz")
    assert done.exit_code == 0
    assert "t.gz: has no source phrase 'zzz'\n" in done.stderr
    assert "e f g h   (seen 3 times, 3 targets)" in done.stdout


@pytest.mark.parametrize("command", ["targets", "summary", "scatter"])
def test_logarithms_are_refused(tmp_path, command):
    (tmp_path / "t").write_bytes(line("a b c d", "x", 0.7, -2.5, "9 200 140"))
    done = seen(command, tmp_path / "t")
    assert (done.exit_code, "t:1: expected a probability as score 5, found '-2.5'" in done.stderr) == (3, True)


def test_a_smaller_table_is_not_written_to_standard_output(scored_table):
    done = seen("prune", scored_table, "-o", "-", "--keep", "0.5")
    assert (done.exit_code, "-: expected the name of a file" in done.stderr) == (1, True)
