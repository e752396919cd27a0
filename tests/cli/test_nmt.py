"""moses-rnn nmt: translations are scored as they were searched, dictionaries counted, treebanks made texts and back."""

import gzip

import pytest
from click.testing import CliRunner

import moses_rnn
from moses_rnn.analysis.dependencies import format_conllu
from moses_rnn.cli.nmt import main
from moses_rnn.moses.lexicon import read_lexicon
from moses_rnn.moses.nbest import parse_nbest
from tests.analysis.random_dependencies import sentence
from tests.translation.sentences import saved_model, sentences, text


def nmt(*arguments):
    done = CliRunner().invoke(main, [*map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done


@pytest.mark.parametrize("score", ["sum", "mean"])
@pytest.mark.parametrize("direction", ["source-to-target", "target-to-source"])
def test_the_score_of_a_translation_is_that_of_the_search(tmp_path, score, direction):
    """A model of the inverse direction reads the table's targets, and its pairs are given in the table's order."""
    model = saved_model(tmp_path / "model", direction=direction)
    (tmp_path / "in").write_bytes(text(line for line in sentences(50) if line))
    beam = "--beam", 4, "--length-score", score, "--n-best", 1, tmp_path / "list"
    nmt("translate", tmp_path / "in", "--model", model, "-o", tmp_path / "out", *beam, "--quiet")
    sides = [tmp_path / "in", tmp_path / "out"][:: 1 if direction == "source-to-target" else -1]
    pairs = zip(*(side.read_bytes().splitlines() for side in sides), strict=True)
    forced = moses_rnn.load(model).score(pairs)
    with (tmp_path / "list").open("rb") as lines:
        searched = list(parse_nbest(lines, "list"))
    sources = (tmp_path / "in").read_bytes().splitlines()
    pairs = [
        (float(line.total), value)
        for source, line, value in zip(sources, searched, forced, strict=True)
        if len(line.hypothesis.split()) < 3 * (len(source.split()) + 1)  # what met the limit has no end to be scored
    ]
    assert [total for total, _ in pairs] == pytest.approx([value for _, value in pairs], rel=1e-4)
    assert len(pairs) > 10


TABLE = b"cat ||| le chat ||| 1 ||| 0-1 ||| 7 5 5 ||| |||\ncat ||| minou ||| 1 ||| 0-0 ||| 7 5 1\n"


def test_links_of_a_table_are_counted(tmp_path):
    (tmp_path / "table").write_bytes(TABLE)
    assert nmt("dictionary", tmp_path / "table").stdout_bytes == b"cat chat 0.833333333\n"
    lines = nmt("dictionary", tmp_path / "table", "--dictionary-count", 1).stdout_bytes.splitlines()
    assert read_lexicon(lines, "d").likeliest(b"cat", 9) == [b"chat", b"minou"]


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


def test_what_is_to_be_parsed_are_the_words_of_all_sentences(here):
    nmt("linearise", "t.conllu", "--words-only", "-o", "new")
    assert (here / "new.words").read_bytes() == b"w1 w2\nw1 w2 w3 w4\nw1\n"
    assert not (here / "new.actions").exists()


def test_trees_and_factors_are_made_and_mended(here):
    (here / "brackets").write_bytes(b"(NP XX XX )NP\n\n(S XX\n")
    done = nmt("rebuild", "brackets", "--words", "words", "--as", "trees")
    assert done.stdout == "(NP (XX a) (XX dog))\n( )\n(S (XX stop) (XX -RRB-))\n"
    assert done.stderr == "3 sentences; 1 malformed\n"
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


def test_no_output_replaces_an_input_whose_suffix_is_left_out(here):
    (here / "actions.gz").write_bytes(gzip.compress((here / "actions").read_bytes()))
    (here / "actions").unlink()
    with pytest.raises(AssertionError, match="actions.gz"):
        nmt("rebuild", "actions", "--words", "words", "--as", "factors", "-o", "actions.gz", "--force")
    assert gzip.decompress((here / "actions.gz").read_bytes()).startswith(b"SH")
