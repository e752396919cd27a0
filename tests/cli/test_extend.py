"""moses-rnn extend: in this process where that is enough, since each process loads torch anew."""

import pytest
from click.testing import CliRunner

from moses_rnn.cli.extend import main
from moses_rnn.table.phrase_table import parse_table
from moses_rnn.table.phrases import words
from tests.cli.scored import INI, lines_of
from tests.commands import run

ALL = ["--min-log-prob", -1e9, "--top", 2, "--threads", 1]


def extend(*arguments, code=0):
    done = CliRunner().invoke(main, [*map(str, arguments)])
    assert done.exit_code == code, done.output
    return done


@pytest.fixture
def text(here):
    """Sentences made of the table's own sources, backwards."""
    sources = [line.split(b" ||| ")[0].split() for line in lines_of(here / "phrase-table.gz")[1000:1400:40]]
    (here / "text").write_bytes(b"".join(b" ".join(reversed(source)) + b" zork\n" for source in sources))
    (here / "moses.ini").write_text(INI.format(table="phrase-table.gz"))
    return here / "text"


def test_a_scored_table_gets_scored_lines(here, text):
    """What the network's column of a new line says is what scoring that line says."""
    table, model = here / "phrase-table.gz", here / "phrase-table.rnn-model"
    run("score", table, "--quiet", "--word-penalty")
    extend(here / "phrase-table.rnn.gz", "--text", text, "--longest", 3, *ALL, "-q")
    lines = list(parse_table(lines_of(here / "phrase-table.rnn.extended.gz"), "new"))
    old = set(lines_of(here / "phrase-table.rnn.gz"))
    new = [line for line in lines if line.line not in old]
    assert len(new) > 20
    run("score", here / "phrase-table.rnn.extended.gz", "--model", model, "-o", here / "again.gz", "--quiet", "--again")
    again = {
        (line.source, line.target): words(line.scores) for line in parse_table(lines_of(here / "again.gz"), "again")
    }
    for line in new:
        scores = again[line.source, line.target]
        assert float(scores[4]) == pytest.approx(float(scores[6]), rel=1e-4)
        assert float(scores[2]) == pytest.approx(float(scores[6]), rel=1e-4)
        assert scores[5] == b"1"
