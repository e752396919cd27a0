"""Everything that is known of a pair, and how it is found in a table."""

import math
from dataclasses import replace

import numpy as np
import pytest

from moses_rnn.analysis.explain import Explainer, Rank, TableWeights, look_up, parse_pair
from moses_rnn.errors import InputError
from moses_rnn.table.phrases import PhraseForm
from moses_rnn.table.table_blocks import parse_blocks
from tests.analysis.tiny import checkpoint

SCORED = [
    b"a ||| w ||| .5 .5 .5 .5 .5\n",
    b"a b ||| u ||| .1 .2 .4 .3 .1\n",
    b"a b ||| u v ||| .1 .2 .1 .3 .8\n",
    b"a b ||| w ||| .1 .2 0 .3 .2\n",
    b"a c ||| u ||| .5 .5 .5 .5 .5\n",
]
UNSCORED = [line.rsplit(b" ", 1)[0] + b"\n" for line in SCORED]
RNN = {b"u": 0.1, b"u v": 0.8, b"w": 0.2, b"z": 0.15}
NAMED = {4: "RNN"}  # of SCORED
LOW = -100.0  # log 0, to Moses


class Scorer:
    name, meaning = "RNN", "as told"
    unbounded = False

    def __init__(self, log_probs=lambda _sources, targets: np.log([RNN[target] for target in targets])):
        self._log_probs = log_probs

    def log_probs(self, pairs, tally=None):
        return self._log_probs(pairs.sources, pairs.targets)


STUB = Scorer()


def explain(text, lines=SCORED, *, of=None, scorer=STUB, weights=None, added=NAMED):
    of = of or checkpoint()
    inverse = of.direction == "target-to-source"
    found, others = look_up(parse_blocks([b"".join(lines)], "t"), "t", parse_pair(text), inverse=inverse)
    return Explainer(of, scorer, others, added, weights)(found)


def test_an_inverse_network_writes_the_source():
    of = checkpoint(direction="target-to-source")
    found = explain(b"u v ||| a qq", [b"u v ||| a qq ||| .1 .2 .4 .3\n"], of=of, scorer=Scorer(lambda s, t: -np.ones(len(s))), added={})  # fmt: skip
    assert [word.word for word in found.words] == ["u", "v", "</s>"]
    assert found.unknown == ["qq"]


FIVE = TableWeights([0, 0, 1, 0, 2], "moses.ini", 1)


# the pair, weights; by p(target|source), by the RNN, without its weight, with it: rank and value
RANKS = [
    (b"a b ||| u", None, (1, math.log(0.4)), (3, math.log(0.1)), None, None),
    (b"a b ||| u", FIVE, (1, math.log(0.4)), (3, math.log(0.1)), (1, math.log(0.4)), (2, math.log(0.4 * 0.1**2))),
    (b"a b ||| u v", FIVE, (2, math.log(0.1)), (1, math.log(0.8)), (2, math.log(0.1)), (1, math.log(0.1 * 0.8**2))),
    (b"a b ||| w", FIVE, (3, LOW), (2, math.log(0.2)), (3, LOW), (3, LOW + 2 * math.log(0.2))),
]


@pytest.mark.parametrize("lines", [SCORED, UNSCORED], ids=["scored", "unscored"])
@pytest.mark.parametrize(("pair", "weights", "table", "rnn", "without", "with_"), RANKS)
def test_ranks(lines, pair, weights, table, rnn, without, with_):
    added = NAMED if lines is SCORED else {}
    ranks = explain(pair, lines, weights=weights, added=added).ranks
    names = ["p(target|source)", "RNN", "weighted sum without RNN", "weighted sum with RNN"]
    expected = [(name, *value) for name, value in zip(names, (table, rnn, without, with_), strict=True) if value]
    assert [(rank.by, rank.rank) for rank in ranks] == [(name, rank) for name, rank, _ in expected]
    assert [rank.value for rank in ranks] == pytest.approx([value for _, _, value in expected])
    assert [rank.cut for rank in ranks] == [None, None, *(rank > 1 for _, rank, _ in expected[2:])]
    assert {rank.of for rank in ranks} == {3}


def test_without_a_table_limit_nothing_is_cut():
    found = explain(b"a b ||| u v", weights=TableWeights([0, 0, 1, 0, 0], "i", 0))
    assert found.ranks[2][1:3] + found.ranks[2][4:] == (2, 3, None)


def test_equal_values_share_the_better_place():
    lines = [b"a ||| u ||| .1 .1 .4 .1\n", b"a ||| w ||| .1 .1 .4 .1\n", b"a ||| z ||| .1 .1 .2 .1\n"]
    assert [explain(b"a ||| " + t, lines, added={}).ranks[0].rank for t in (b"u", b"w", b"z")] == [1, 1, 3]


def test_equal_scores_have_equal_sums():
    """NumPy 2's product of matrices on AVX-512 gave the last rows of this table another sum."""
    scores = b"0.0915848 0.361057 0.169084 0.808962 0.853834 0.251583 0.212219 0.0357344"
    lines = [b"a ||| %c ||| %b\n" % (letter, scores) for letter in b"tuvwxyz"]
    weights = TableWeights([0.681246, 0.999719, 0.638471, 0.803669, 0.860244, 0.509067, 0.37206, 0.935712], "i", 7)
    same = Scorer(lambda _, targets: np.full(len(targets), -1.0))
    pairs = [b"a ||| %c" % letter for letter in b"tuvwxyz"]
    found = [explain(pair, lines, scorer=same, weights=weights, added={}).ranks[-1] for pair in pairs]
    assert {rank.rank for rank in found} == {1}


# the last score of each target, the name it gets, what the weighted sums are called
UNNAMED = [
    ({}, "RNN", ["weighted sum without RNN", "weighted sum with RNN"]),
    ({b"u v": 0.5}, "score 5", ["weighted sum"]),
]


@pytest.mark.parametrize(("other", "name", "sums"), UNNAMED)
def test_a_score_that_nobody_named_is_known_by_its_values(other, name, sums):
    lines = [b"a b ||| %b ||| .1 .1 .1 .1 %g\n" % (target, {**RNN, **other}[target]) for target in RNN]
    found = explain(b"a b ||| u", lines, added={}, weights=FIVE)
    assert found.columns[-1].name == name
    assert [rank.by for rank in found.ranks[2:]] == sums


# names by the signature; the scores behind two of a table's own: the network's is never the table's p(target|source)
FEW = [({2: "RNN"}, []), ({2: "RNN", 3: "RNNInverse"}, [0.3]), ({}, []), ({}, [0.3])]


@pytest.mark.parametrize(("added", "more"), FEW)
def test_a_table_without_the_four_scores_has_no_known_direct_probability(added, more):
    lines = [b"a b ||| %b ||| %s\n" % (t, b" ".join(b"%g" % s for s in (0.5, 0.4, RNN[t], *more))) for t in RNN]
    found = explain(b"a b ||| u", lines, added=added)
    assert [rank.by for rank in found.ranks] == ["RNN"]
    assert [column.name for column in found.columns[:3]] == ["score 1", "score 2", "RNN"]


def test_a_pair_that_is_not_in_the_table():
    found = explain(b"a  b ||| z", weights=FIVE)
    assert (found.in_table, found.targets, found.columns) == (False, 3, [])
    assert found.ranks == [
        Rank("p(target|source)", None, 3, None),
        Rank("RNN", 3, 4, math.log(0.15)),  # behind .8 and .2, before .1
        Rank("weighted sum without RNN", None, 3, None),
        Rank("weighted sum with RNN", None, 3, None),
    ]
    assert "  not in the table, which has 3 other targets of its source\n" in str(found)
    assert "  p(target|source): not among the 3, as it is not in the table\n" in str(found)


def test_a_pasted_line_is_a_pair():
    assert parse_pair(SCORED[2]) == parse_pair(b"a b|||u v")


@pytest.mark.parametrize("blank", [b" ", b"  ", b"\t"])
def test_words_are_compared_and_not_their_blanks(blank):
    lines = [line.replace(b"a b", b"a" + blank + b"b") for line in SCORED]
    assert explain(b"a b ||| u v", lines) == explain(b"a b ||| u v")


RULES = PhraseForm(hierarchical=True)


def test_a_rule_with_gaps_needs_its_alignment():
    rule = b"a [X][X] [X] ||| u [X][X] [X]"
    with pytest.raises(
        InputError, match=r"^expected a rule of the table, or a line that aligns its non-terminals, found "
    ):
        Explainer(checkpoint(), STUB)(parse_pair(rule, RULES))
    assert parse_pair(rule + b" ||| .1 ||| 1-1", RULES).read == (b"a [X][X]1 [X]", b"u [X][X]1 [X]")
    line = rule + b" ||| .1 .1 .1 .1 ||| 1-1 ||| 1 1 1\n"
    found, _ = look_up(parse_blocks([line], "t", form=RULES), "t", parse_pair(rule, RULES), inverse=False)  # fmt: skip
    assert found.read == (b"a [X][X]1 [X]", b"u [X][X]1 [X]")
    with pytest.raises(InputError, match="expected a left-hand side such as "):
        parse_pair(b"a ||| u", RULES)
    with pytest.raises(InputError, match="^expected a rule of the table"):
        Explainer(checkpoint(), STUB)(parse_pair(b"a [X] ||| u [X][X] [X]", RULES))


# what was given as a pair, form; what is wrong
NOT_PAIRS = [
    (b"a ||| b\nc ||| d", PhraseForm(), "expected a pair as 'source ||| target', found 'a ||| b\\nc ||| d'"),
    (b"a|A ||| b", PhraseForm(2, None), "the pair:1: expected source words with a factor 2 (counted from 0), found 2 in 'a|A'"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "form", "message"), NOT_PAIRS)
def test_what_is_no_pair_is_refused(text, form, message):
    with pytest.raises(InputError) as caught:
        parse_pair(text, form)
    assert str(caught.value).startswith(message)


def test_a_factored_pair_is_read_by_its_factors():
    assert parse_pair(b"a|A b|B ||| u|U", PhraseForm(1, 0)).read == (b"A B", b"u")


def test_of_a_rule_that_is_there_twice_the_chosen_line_counts():
    """As the report asks for it: the two differ in the alignment of their gaps alone."""
    lines = [b"a ||| u ||| .1 .1 .4 .1 %g\n" % score for score in (0.3, RNN[b"u"])]
    found, others = look_up(parse_blocks([b"".join(lines)], "t"), "t", parse_pair(b"a ||| u"), inverse=False)
    scores = [
        Explainer(checkpoint(), STUB, others, NAMED, None)(replace(found, chosen=i)).columns[-1].score for i in (0, 1)
    ]
    assert scores == [0.3, RNN[b"u"]]
