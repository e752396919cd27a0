"""moses-rnn nmt linearise and rebuild: a treebank as texts, trees and factors of what a network wrote."""

import gzip

import pytest
from click.testing import CliRunner

from moses_rnn.analysis.dependencies import format_conllu
from moses_rnn.cli.nmt import main
from tests.analysis.random_dependencies import sentence

TREES = b"(S (NP (DT a) (NN dog)) (VP (VBZ barks)))\n( (S\n  (VP (VB stop)) (. -RRB-)))\n"
CONLLU = b"".join(map(format_conllu, [sentence((2, 0)), sentence((3, 4, 0, 3)), sentence((0,))]))  # the second crosses


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.trees").write_bytes(TREES)
    (tmp_path / "t.conllu.gz").write_bytes(gzip.compress(CONLLU))
    (tmp_path / "words").write_bytes(b"a dog\n\nstop )\n")
    (tmp_path / "actions").write_bytes(b"SH SH LA:det RA:root\n\nSH RA:root\n")
    return tmp_path


def nmt(*arguments):
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    return done


def test_what_is_to_be_parsed_are_the_words_of_all_sentences(here):
    nmt("linearise", "t.conllu", "--words-only", "-o", "new")
    assert (here / "new.words").read_bytes() == b"w1 w2\nw1 w2 w3 w4\nw1\n"
    assert not (here / "new.actions").exists()


def test_trees_and_factors_are_made_and_mended(here):
    (here / "brackets").write_bytes(b"(NP XX XX )NP\n\n(S XX\n")
    done = nmt("rebuild", "brackets", "--words", "words", "--as", "trees")
    assert done.stdout == "(NP (XX a) (XX dog))\n( )\n(S (XX stop) (XX -RRB-))\n"
    assert done.stderr == "3 sentences; 1 were malformed\n"
    nmt("rebuild", "actions", "--words", "words", "--as", "factors", "-o", "new")
    assert (here / "new").read_bytes() == b"a|det dog|root\n\nstop|root )|dep\n"


def test_what_was_linearised_comes_back(here):
    text = b"".join(map(format_conllu, [sentence((2, 0, 2, 3)), sentence((0, 1))]))
    (here / "t.conllu").write_bytes(text)
    nmt("linearise", "t.conllu", "-o", "t")
    assert nmt("rebuild", "t.actions", "--words", "t.words", "--as", "conllu").stdout_bytes == text
    trees = b"(S (NP (XX a)) (XX b))\n(X (XX c))\n"
    (here / "t.trees").write_bytes(trees)
    nmt("linearise", "t.trees", "-o", "t", "--force")
    assert nmt("rebuild", "t.brackets", "--words", "t.words", "--as", "trees").stdout_bytes == trees
