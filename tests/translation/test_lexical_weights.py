"""Lexical weights and alignments by the statistics of a table."""

import gzip
import math
import statistics

import pytest

from moses_rnn.moses.alignments import parse_links
from moses_rnn.table.phrase_forms import words
from moses_rnn.table.phrase_table import parse_table
from moses_rnn.translation.lexical_weights import LEAST, NO_WORD, LexicalWeights
from tests.conftest import EXAMPLES

TABLE = [
    b"a ||| x ||| .1 ||| 0-0 ||| 9 9 6 ||| |||\n",
    b"a ||| y ||| .1 ||| 0-0 ||| 9 9 2 ||| |||\n",
    b"a ||| n x ||| .1 ||| 0-1 ||| 9 9 2 ||| |||\n",  # n has no link
    b"b c ||| y ||| .1 ||| 0-0 1-0 ||| 9 9 4 ||| |||\n",
    b"a b ||| x y ||| .1 ||| 0-0 1-1 ||| 9 9 99 ||| |||\n",  # no side is one word
]


def weights_of(lines):
    weights = LexicalWeights()
    for line in parse_table(lines, "t"):
        weights.add(line)
    return weights


def test_probabilities_are_shares_of_links():
    weights = weights_of(TABLE)
    assert weights.of_target(b"x", b"a") == 8 / 10  # a: x 6 + 2, y 2
    assert weights.of_target(b"y", b"a") == 2 / 10
    assert weights.of_source(b"a", b"y") == 2 / 10  # y: a 2, b 4, c 4
    assert weights.of_source(b"b", b"y") == 4 / 10
    assert weights.of_target(b"n", NO_WORD) == 1
    assert weights.of_source(NO_WORD, b"n") == 1
    assert weights.of_target(b"x", b"b") == weights.of_source(b"z", b"x") == 0


WITHOUT_COUNTS = {
    "no counts": [b"a ||| x ||| .1 ||| 0-0\n", b"a ||| y ||| .1 ||| 0-0\n"],
    "other counts": [b"a ||| x ||| .1 ||| 0-0 ||| 3 2\n", b"a ||| y ||| .1 ||| 0-0 ||| k k k\n"],
    "no alignment of single words": [b"a ||| x ||| .1\n", b"a ||| y ||| .1 ||| |||\n"],
    "alignments that say nothing": [
        b"a ||| q x ||| .1\n",
        b"a ||| x ||| .1 ||| 0-0\n",
        b"a ||| x y ||| .1 ||| 0-7\n",
        b"a ||| y ||| .1 ||| 0-0\n",
        b"a ||| y z ||| .1 ||| zero\n",
        b"a ||| ||| .1\n",
    ],
}


@pytest.mark.parametrize("case", WITHOUT_COUNTS)
def test_lines_without_a_count_count_once_and_odd_ones_not_at_all(case):
    weights = weights_of(WITHOUT_COUNTS[case])
    assert weights.of_target(b"x", b"a") == weights.of_target(b"y", b"a") == 1 / 2


def test_the_weights_of_a_pair_are_koehns():
    weights = weights_of(TABLE)
    source, target, links = b"a b".split(), b"n x y".split(), ((0, 1), (0, 2), (1, 2))
    # a: mean of p(a|x) = 1 and p(a|y) = .2; b: p(b|y) = .4
    # n: p(n|nothing) = 1; x: p(x|a) = .8; y: mean of p(y|a) = .2 and p(y|b) = 1
    assert weights.weigh(source, target, links) == pytest.approx((0.6 * 0.4, 1 * 0.8 * 0.6))
    assert weights.weigh([b"z"], [b"x"], ((0, 0),)) == (LEAST, LEAST)


ALIGNED = [
    (b"a b", b"x y", "0-0 1-1"),
    (b"b a", b"n x y", "0-2 1-1"),  # n goes with no word
    (b"a a", b"x x", "0-0 1-1"),  # by the diagonal
    (b"b c", b"y", "0-0 1-0"),  # c, which is left, is linked too
    (b"b z", b"y", "0-0"),
    (b"z", b"q r s", "0-0 0-1 0-2"),  # nothing is known of these
    (b"z q r", b"w", "0-0 1-0 2-0"),
]


@pytest.mark.parametrize(("source", "target", "links"), ALIGNED)
def test_words_are_linked_where_they_go_best(source, target, links):
    assert weights_of(TABLE).align(source.split(), target.split()) == parse_links(links.encode())


def test_a_table_without_statistics_gives_the_diagonal_and_the_least():
    weights = weights_of([])
    links = weights.align([b"a", b"b"], [b"x", b"y"])
    assert links == ((0, 0), (1, 1))
    assert weights.weigh([b"a", b"b"], [b"x", b"y"], links) == pytest.approx((LEAST**2, LEAST**2))


def test_the_example_tables_own_weights_and_links_are_met():
    """Its columns 2 and 4 come from Moses's lexicon, which saw the sentences."""
    with gzip.open(EXAMPLES / "phrase-table.gz") as file:
        table = list(file)
    weights, lines, errors, equal = weights_of(table), list(parse_table(table[::50], "t")), [], 0
    for line in lines:
        source, target = words(line.source), words(line.target)
        links = weights.align(source, target)
        equal += links == tuple(sorted(parse_links(line.alignment)))
        own = [float(score) for score in words(line.scores)]
        for ours, theirs in zip(weights.weigh(source, target, links), (own[1], own[3]), strict=True):
            errors.append(abs(math.log(ours / theirs)) / max(len(source), len(target)))
    print(f"median error {statistics.median(errors):.3f} nats a word, {equal / len(lines):.0%} of the alignments")
    assert statistics.median(errors) < 0.15
    assert equal > 0.7 * len(lines)
