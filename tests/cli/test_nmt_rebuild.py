"""moses-rnn-nmt rebuild: trees and factors of what a network wrote."""

import pytest
from click.testing import CliRunner

from moses_rnn.cli.nmt_linearise import linearise
from moses_rnn.cli.nmt_rebuild import rebuild
from moses_rnn.formats.conllu import format_conllu
from tests.formats.random_dependencies import sentence

WORDS = b"a dog\n\nstop )\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words").write_bytes(WORDS)
    (tmp_path / "brackets").write_bytes(b"(NP XX XX )NP\n\n(S XX\n")
    (tmp_path / "actions").write_bytes(b"SH SH LA:det RA:root\n\nSH RA:root\n")
    return tmp_path


def rebuilt(*arguments, code=0):
    done = CliRunner().invoke(rebuild, [*map(str, arguments)])
    assert done.exit_code == code, done.output
    return done


def test_as_trees(here):
    done = rebuilt("brackets", "--words", "words", "--as", "trees")
    assert done.stdout == "(NP (XX a) (XX dog))\n( )\n(S (XX stop) (XX -RRB-))\n"
    assert done.stderr == "3 sentences; 1 were malformed\n"


def test_as_factors(here):
    done = rebuilt("actions", "--words", "words", "--as", "factors", "-o", "new")
    assert (here / "new").read_bytes() == b"a|det dog|root\n\nstop|root )|dep\n"
    assert (done.stdout, done.stderr) == ("", "3 sentences; 1 were malformed\n")


def test_as_conllu(here):
    (here / "words").write_bytes(WORDS.replace(b"\n\n", b"\n"))
    (here / "actions").write_bytes(b"SH SH LA:det RA:root\nSH RA:root\n")
    done = rebuilt("actions", "--words", "words", "--as", "conllu", "-q")
    blocks = done.stdout.split("\n\n")
    assert [row.split("\t")[6:8] for row in blocks[0].splitlines()] == [["2", "det"], ["0", "root"]]
    assert [row.split("\t")[6:8] for row in blocks[1].splitlines()] == [["0", "root"], ["0", "dep"]]
    assert done.stderr == ""


def test_what_was_linearised_comes_back(here):
    text = b"".join(map(format_conllu, [sentence((2, 0, 2, 3)), sentence((0, 1))]))
    (here / "t.conllu").write_bytes(text)
    assert CliRunner().invoke(linearise, ["t.conllu", "-o", "t"]).exit_code == 0
    assert rebuilt("t.actions", "--words", "t.words", "--as", "conllu").stdout_bytes == text
    trees = b"(S (NP (XX a)) (XX b))\n(X (XX c))\n"
    (here / "t.trees").write_bytes(trees)
    assert CliRunner().invoke(linearise, ["t.trees", "-o", "t", "--force"]).exit_code == 0
    assert rebuilt("t.brackets", "--words", "t.words", "--as", "trees").stdout_bytes == trees
