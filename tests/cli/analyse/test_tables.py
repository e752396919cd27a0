"""moses-rnn-analyse targets and summary: what is printed as a table."""

import csv
import io

import pytest

from tests.cli.analyse.calls import seen
from tests.commands import run


def test_targets_before_and_after(tmp_path, table, model):
    scored = tmp_path / "t.gz"
    run("score", table, "--model", model, "-o", scored)
    done = run("analyse", "targets", scored, "--count", "2", "--top", "2", "--min-words", "3")
    title, _, text = done.stdout.partition("\n\n")
    text = text.partition("Long, rare")[0].rstrip("\n")
    assert title.startswith("Long, frequent source phrases (at least 3 words, at least 2 targets; 2 of ")
    assert text.count("p(target|source)") == 2
    one = run("analyse", "targets", scored, "--source", text.split("   (seen", maxsplit=1)[0], "--top", "2")
    assert text.startswith(one.stdout.removesuffix("\n"))
    assert one.stderr == ""  # progress is for terminals


def test_frequent_and_rare_sources(scored_table):
    text = seen("targets", scored_table).stdout
    assert "a b c d   (seen 200 times, 3 targets)" in text
    assert text.index("Long, frequent") < text.index("Long, rare") < text.rindex("e f g h   (seen 3 times, 3 targets)")


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ("markdown", "| 2 | y\\&\\#124;z | 0.2 | x | 0.2 |"),
        ("latex", r"& 3 & 50 \% & 0.1 & 50 \% & 0.1 \\"),
        ("tsv", "Long, frequent source phrases\ta b c d\t200\t3\t2\ty&#124;z\t0.2\tx\t0.2\n"),
        (
            "jsonl",
            '"rank": 2, "by p(target|source)": "y&#124;z", "p(target|source)": 0.2, "by RNN": "x", "RNN": 0.2}\n',
        ),
        ("csv", '"Long, frequent source phrases",a b c d,200,3,2,y&#124;z,0.2,x,0.2\n'),
    ],
)
def test_targets_in_other_formats(scored_table, layout, expected):
    assert expected in seen("targets", scored_table, "--format", layout).stdout


def test_csv_keeps_odd_bytes(tmp_path):
    (tmp_path / "t").write_bytes(b"a ||| \xff\xc2\xa0 ||| 1 1 1 1 1\n")
    data = seen("targets", tmp_path / "t", "--source", "a", "--format", "csv", "--column", 4).stdout_bytes
    assert b",\xff\xc2\xa0,1,\xff\xc2\xa0,1\n" in data


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


def test_sources_that_are_not_there_are_said(scored_table):
    done = seen("targets", scored_table, "--source", " e  f g h", "--source", "zzz")
    assert done.exit_code == 0
    assert "t.gz: has no source phrase 'zzz'\n" in done.stderr
    assert "e f g h   (seen 3 times, 3 targets)" in done.stdout
