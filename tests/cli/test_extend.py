import pytest

from moses_rnn.table.phrase_table import parse_table
from moses_rnn.table.phrases import words
from tests.cli.scored import lines_of
from tests.commands import run


def scores_of(path):
    return {(line.source, line.target): words(line.scores) for line in parse_table(lines_of(path), "scores")}


def test_new_lines_of_a_scored_table_have_the_scores_that_scoring_gives_them(here):
    sources = [line.split(b" ||| ")[0].split() for line in lines_of(here / "phrase-table.gz")[1000:1400:40]]
    (here / "text").write_bytes(b"".join(b" ".join(reversed(source)) + b" zork\n" for source in sources))
    run("score", "phrase-table.gz", "-q", "--word-penalty", cwd=here)
    every = ["--min-log-prob", -1e9, "--top", 2, "--longest", 3]
    run("extend", "phrase-table.rnn.gz", "--text", "text", *every, "-q", cwd=here)
    options = ["--model", "phrase-table.rnn-model", "-o", "again.gz", "-q", "--again"]
    run("score", "phrase-table.rnn.extended.gz", *options, cwd=here)
    old, again = scores_of(here / "phrase-table.rnn.gz"), scores_of(here / "again.gz")
    new = [scores for pair, scores in again.items() if pair not in old]
    assert len(new) > 20
    for scores in new:
        direct, rnn, penalty, scored = scores[2], scores[4], scores[5], scores[6]
        assert [float(direct), float(rnn)] == pytest.approx([float(scored)] * 2, rel=1e-4)
        assert penalty == b"1"
