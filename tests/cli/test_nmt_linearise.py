"""moses-rnn-nmt linearise: a treebank as texts, all or nothing."""

import gzip

import pytest
from click.testing import CliRunner

from moses_rnn.cli.nmt_linearise import linearise
from moses_rnn.formats.conllu import format_conllu
from tests.formats.random_dependencies import sentence

TREES = b"(S (NP (DT a) (NN dog)) (VP (VBZ barks)))\n( (S\n  (VP (VB stop)) (. -RRB-)))\n"
CROSSING = sentence((3, 4, 0, 3))
CONLLU = b"".join(map(format_conllu, [sentence((2, 0)), CROSSING, sentence((0,))]))


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.trees").write_bytes(TREES)
    (tmp_path / "t.conllu.gz").write_bytes(gzip.compress(CONLLU))
    return tmp_path


def linearised(*arguments, code=0):
    done = CliRunner().invoke(linearise, [*map(str, arguments)])
    assert done.exit_code == code, done.output
    return done


def test_trees_become_words_and_brackets(here):
    done = linearised("t.trees", "-o", "new")
    assert (here / "new.words").read_bytes() == b"a dog barks\nstop )\n"
    assert (here / "new.brackets").read_bytes() == b"(S (NP XX XX )NP (VP XX )VP )S\n(S (VP XX )VP XX )S\n"
    assert done.stderr == "2 sentences in new.words and new.brackets\n"


def test_dependencies_become_words_and_actions(here):
    done = linearised("t.conllu.gz", "-o", "new")
    assert (here / "new.words").read_bytes() == b"w1 w2\nw1\n"
    assert (here / "new.actions").read_bytes() == b"SH SH LA:r1 RA:r2\nSH RA:r1\n"
    assert done.stderr == "2 sentences in new.words and new.actions; 1 with crossing arcs left out\n"


def test_what_is_to_be_parsed_are_the_words_of_all_sentences(here):
    done = linearised("t.conllu", "--words-only", "-o", "new")
    assert (here / "new.words").read_bytes() == b"w1 w2\nw1 w2 w3 w4\nw1\n"
    assert not (here / "new.actions").exists()
    assert done.stderr == "3 sentences in new.words\n"


def test_the_name_says_what_is_in_it_unless_an_option_does(here):
    (here / "t").write_bytes(CONLLU)
    linearised("t", "--from", "conllu", "-o", "new", "-q")
    assert (here / "new.actions").exists()
    assert "t:1: expected " in linearised("t", "-o", "other", code=3).stderr
