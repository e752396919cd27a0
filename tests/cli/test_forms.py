"""Factored and hierarchical tables from training to the scored table."""

import gzip
import itertools
import json

import pytest

from moses_rnn.table.phrase_table import parse_table
from moses_rnn.table.phrases import PLAIN, PhraseForm, words
from tests.cli.scored import lines_of
from tests.commands import run
from tests.conftest import EXAMPLES, LEARNED, TINY


def plain_lines(count=600):
    with gzip.open(EXAMPLES / "phrase-table.gz") as lines:
        return list(itertools.islice(lines, count))


def with_factors(line):
    """The same line, each word with its last letter as a second factor."""
    source, target, rest = line.split(b" ||| ", 2)
    factored = [b" ".join(word + b"|" + word[-1:] for word in phrase.split(b" ")) for phrase in (source, target)]
    return b" ||| ".join([*factored, rest])


def as_rule(line):
    """The same line with a gap before it and a left-hand side behind it."""
    source, target, rest = line.split(b" ||| ", 2)
    return b"[X][X] %s [X] ||| [X][X] %s [X] ||| %s ||| 0-0 ||| 1 1 1 ||| |||\n" % (
        source,
        target,
        rest.split(b" |||")[0],
    )


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    folder = tmp_path_factory.mktemp("forms")
    for name, change in (("plain", bytes), ("factored", with_factors), ("rules", as_rule)):
        (folder / name).write_bytes(b"".join(map(change, plain_lines())))
        options = ["--source-factor", "0", "--target-factor", "0"] if name == "factored" else []
        run("train", name, *TINY, *options, *LEARNED, "--quiet", cwd=folder)
        run("score", name, "--quiet", cwd=folder)
    return folder


FORMS = {  # how each is read, and what its signature says of that
    "plain": (PLAIN, "plain words"),
    "factored": (PhraseForm(0, 0), "words with source factor 0 and target factor 0"),
    "rules": (PhraseForm(hierarchical=True), "hierarchical rules"),
}


def values_of(path, form):
    return [words(line.scores)[-1] for line in parse_table(lines_of(path), "scored", form=form)]


@pytest.mark.parametrize("name", FORMS)
def test_only_a_score_is_added(here, name):
    form, said = FORMS[name]
    without = []
    for line in parse_table(lines_of(here / f"{name}.rnn.gz"), "scored", form=form):
        *_, added = words(line.scores)
        assert 0 < float(added) < 1
        end = line.spans.scores_end
        without.append(line.line[: end - len(added) - 1] + line.line[end:])
    assert b"".join(without) == (here / name).read_bytes()
    assert json.loads((here / f"{name}.rnn.gz.json").read_text())["phrases"] == said


def test_a_factor_is_scored_as_the_plain_word(here):
    plain = values_of(here / "plain.rnn.gz", PLAIN)
    assert values_of(here / "factored.rnn.gz", FORMS["factored"][0]) == plain


def test_gaps_are_words_of_the_shortlist(here):
    words = (here / "rules.rnn-model" / "target.vocab").read_text().split("\n")
    assert {"[X]", "[X][X]1"} <= set(words)
