"""examples/parsing/parsing.py: treebanks become texts, what a network wrote becomes trees, and both are compared."""

import hashlib
import subprocess
import sys

import pytest
from dependencies import find_actions, format_conllu, read_conllu
from trees import read_trees

from tests.conftest import EXAMPLES
from tests.examples.parsing.random_dependencies import sentence

TREES = b"(S (NP (DT a) (NN dog)) (VP (VBZ barks)))\n( (S\n  (VP (VB stop)) (. -RRB-)))\n"
CONLLU = b"".join(map(format_conllu, [sentence((2, 0)), sentence((3, 4, 0, 3)), sentence((0,))]))  # the second crosses


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.trees").write_bytes(TREES)
    (tmp_path / "t.conllu").write_bytes(CONLLU)
    (tmp_path / "words").write_bytes(b"a dog\n\nstop )\n")
    (tmp_path / "actions").write_bytes(b"SH SH LA:det RA:root\n\nSH RA:root\n")
    return tmp_path


def start(line):
    program = [sys.executable, EXAMPLES / "parsing" / "parsing.py"]
    return subprocess.run([*program, *line.split()], capture_output=True, check=False)


def parsing(line):
    """What the program prints, and its messages."""
    done = start(line)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout, done.stderr.decode()


def test_trees_become_words_and_brackets(here):
    assert parsing("linearise t.trees -o new")[1] == "2 sentences; 0 with crossing arcs left out\n"
    assert (here / "new.words").read_bytes() == b"a dog barks\nstop )\n"
    assert (here / "new.brackets").read_bytes() == b"(S (NP XX XX )NP (VP XX )VP )S\n(S (VP XX )VP XX )S\n"


def test_sentences_with_crossing_arcs_are_left_out_and_counted(here):
    assert parsing("linearise t.conllu -o new")[1] == "2 sentences; 1 with crossing arcs left out\n"
    assert (here / "new.words").read_bytes() == b"w1 w2\nw1\n"
    assert (here / "new.actions").read_bytes() == b"SH SH LA:r1 RA:r2\nSH RA:r1\n"


def test_what_is_to_be_parsed_are_the_words_of_all_sentences(here):
    parsing("linearise t.conllu --words-only -o new")
    assert (here / "new.words").read_bytes() == b"w1 w2\nw1 w2 w3 w4\nw1\n"
    assert not (here / "new.actions").exists()


def test_trees_and_factors_are_made_and_mended(here):
    (here / "brackets").write_bytes(b"(NP XX XX )NP\n\n(S XX\n")
    printed, messages = parsing("rebuild brackets --words words --as trees")
    assert printed == b"(NP (XX a) (XX dog))\n( )\n(S (XX stop) (XX -RRB-))\n"
    assert messages == "3 sentences; 1 malformed\n"
    assert parsing("rebuild actions --words words --as factors")[0] == b"a|det dog|root\n\nstop|root )|dep\n"


def test_what_was_linearised_comes_back(here):
    text = b"".join(map(format_conllu, [sentence((2, 0, 2, 3)), sentence((0, 1))]))
    (here / "own.conllu").write_bytes(text)
    parsing("linearise own.conllu -o own")
    assert parsing("rebuild own.actions --words own.words --as conllu")[0] == text
    trees = b"(S (NP (XX a)) (XX b))\n(X (XX c))\n"
    (here / "other.trees").write_bytes(trees)
    parsing("linearise other.trees -o other")
    assert parsing("rebuild other.brackets --words other.words --as trees")[0] == trees


def test_outputs_are_compared_with_the_treebank(here):
    (here / "right").write_bytes(b"(S (NP XX XX )NP (VP XX )VP )S\n(S (VP XX )VP XX )S\n")
    (here / "wrong").write_bytes(b"(S (NP XX XX )NP XX )S\n(S (VP XX\n")
    lines = parsing("evaluate t.trees right wrong")[0].decode().splitlines()
    assert lines[0] == "Brackets, in per cent (trees: 2, brackets: 5)"
    assert [line.split()[:5] for line in lines[2:4]] == [
        ["right", "0.00", "100.00", "100.00", "100.00"],
        ["wrong", "50.00", "100.00", "80.00", "88.89"],
    ]
    (here / "own.conllu").write_bytes(format_conllu(sentence((2, 0))))
    (here / "heads").write_bytes(b"SH SH LA:r1 RA:x\n")
    lines = parsing("evaluate own.conllu heads")[0].decode().splitlines()
    assert lines[2].split() == ["heads", "0.00", "0", "0", "100.00", "50.00", "0.00"]


def test_the_treebank_is_the_same_again(tmp_path):
    """So that figures of docs/results.md can be had again; its trees and its dependencies are of the same sentences."""
    subprocess.run([sys.executable, EXAMPLES / "make_trees.py", tmp_path], check=True)
    digest = hashlib.sha256((tmp_path / "test.trees").read_bytes() + (tmp_path / "test.conllu").read_bytes())
    assert digest.hexdigest()[:16] == "47d2916adef442f6"
    for name in ("dev", "test", "train"):
        trees = [tree.words for tree in read_trees((tmp_path / f"{name}.trees").read_bytes(), name)]
        sentences = list(read_conllu((tmp_path / f"{name}.conllu").read_bytes(), name))
        assert trees == [sentence.words for sentence in sentences]
        assert None not in map(find_actions, sentences)  # a parser can make each of them


REFUSED = {  # the command, what the message begins with
    "no file": ("linearise nothing.trees -o new", "[Errno 2] No such file or directory: 'nothing.trees'"),
    "no trees": ("linearise blank.trees -o new", "blank.trees: expected trees, found none"),
    "no arcs that do not cross": (
        "linearise crossing.conllu -o new",
        "crossing.conllu: expected trees without crossing arcs, found none",
    ),
    "what is there already": ("linearise t.trees -o mine", "mine.words exists already"),
    "no folder": ("linearise t.trees -o none/new", "[Errno 2] No such file or directory: 'none/new.words'"),
    "lines that are not there": ("rebuild short --words words --as trees", "short: expected "),
    "an empty sentence as CoNLL-U": (
        "rebuild actions --words words --as conllu",
        "words:2: expected a sentence, found",
    ),
    "output of another length": ("evaluate t.trees short", "short: expected a line for each of 2 trees, found 1"),
    "a gold file without trees": ("evaluate blank.trees short", "blank.trees: expected trees, found none"),
}


@pytest.mark.parametrize(("line", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(here, line, message):
    (here / "blank.trees").write_bytes(b" \n\n")
    (here / "crossing.conllu").write_bytes(format_conllu(sentence((3, 4, 0, 3))))
    (here / "mine.words").write_bytes(b"mine")
    (here / "short").write_bytes(b"XX\n")
    done = start(line)
    assert (done.returncode, done.stdout) == (1, b""), done.stderr
    assert done.stderr.decode().startswith(f"parsing.py: {message}")
    assert not list(here.glob("new*"))
    assert (here / "mine.words").read_bytes() == b"mine"
