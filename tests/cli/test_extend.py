"""moses-rnn extend: in this process where that is enough, since each process loads torch anew."""

import json

import pytest
from click.testing import CliRunner

from moses_rnn.cli.extend import main
from moses_rnn.formats.phrase_forms import words
from moses_rnn.formats.phrase_table import parse_table
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


def test_the_example_of_the_help_as_a_process(here, text):
    options = [
        "--text",
        "text",
        "--fewer-than",
        "2",
        "--longest",
        "2",
        "--provenance",
        "column",
        "--moses-ini",
        "moses.ini",
    ]
    done = run("extend", "phrase-table.gz", *options, *ALL, cwd=here)
    old, new = (lines_of(here / f"phrase-table{suffix}.gz") for suffix in ("", ".extended"))
    assert new == sorted(new)
    parsed = list(parse_table(new, "new"))
    kept = [line.line.replace(line.scores, line.scores[:-2], 1) for line in parsed if line.scores.endswith(b" 1")]
    assert kept == old
    added = [line for line in parsed if line.scores.endswith(b" 2.718281828")]
    assert len(added) == len(new) - len(old) > 100
    assert {len(words(line.scores)) for line in parsed} == {5}
    feature = f"PhraseDictionaryMemory name=TranslationModel0 num-features=5 path={here}/phrase-table.extended.gz"
    assert done.stdout.splitlines()[1].startswith(feature)
    assert "TranslationModel0= 0.2 0.2 0.2 0.2 0\n" in (here / "moses.extended.ini").read_text()
    signature = json.loads((here / "phrase-table.extended.gz.json").read_text())
    assert signature["lines"] == len(new)
    assert f"{len(new):,} lines, {len(added):,} of them new: phrase-table.extended.gz\n" in done.stderr
    validated = run("validate", "phrase-table.extended.gz", "--sorted", cwd=here)
    assert "as written by moses_rnn" in validated.stdout


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
