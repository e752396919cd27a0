"""moses-rnn analyse map alignments and sentences: what they print, draw and refuse."""

import dataclasses

import pytest

from tests.analysis.attentive import LINES, TRANSLATIONS, save, search
from tests.cli.analyse.calls import invoke
from tests.commands import run

SEARCH = "--model", "search"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "search", search(provenance={"unit": "sentences"}))
    (tmp_path / "src").write_bytes(b"".join(LINES))
    (tmp_path / "trg").write_bytes(b"".join(TRANSLATIONS))
    (tmp_path / "short").write_bytes(b"t2\n")
    return tmp_path


def test_who_learned_from_phrases_is_named(here):
    model = search()
    model.network.config = dataclasses.replace(model.network.config, unit="phrases")
    save(here / "of-phrases", dataclasses.replace(model))  # which reads the config anew
    done = invoke("map", "alignments", "src", "--model", "of-phrases", "--line", 1)
    assert "warning: of-phrases: learned from phrases, but" in done.stderr


def test_a_table_that_an_rnnsearch_scored_has_its_report(here):
    lines = [f"s{i} s{i + 1} s{i} s2 ||| t{i} ||| .1 .1 .1 .1 ||| 0-0 ||| 1 1 1 ||| |||\n" for i in range(2, 6)]
    (here / "t").write_text("".join(lines))
    run("score", "t", "--model", "search", "-o", "scored.gz", "--allow-misfit", "--quiet", cwd=here)
    done = invoke("report", "scored.gz", *SEARCH, "-o", "r.html", "--source-text", "src")
    assert done.stdout == "The report is in r.html.\n"
    text = (here / "r.html").read_text(encoding="utf-8")
    assert "Line 1: s2 s3 s4 → " in text
    assert 'id="gates"' not in text
    (here / "long").write_text("s2 " * 50 + "\n\n")
    invoke("report", "scored.gz", *SEARCH, "-o", "long.html", "--source-text", "long")
    assert "There are no such lines." in (here / "long.html").read_text(encoding="utf-8")
    again = ["report", "scored.gz", *SEARCH, "-o", "src", "--source-text", "src", "--force"]
    assert "src: is the input" in invoke(*again, code=1).stderr
