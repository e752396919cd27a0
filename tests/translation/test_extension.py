"""Which sources are wanted, and the lines, alignments and weights of what a network proposes for them."""

import gzip
import itertools
import math
import random
import statistics
from types import SimpleNamespace

import pytest

from moses_rnn.errors import FormatError, MisfitError
from moses_rnn.moses.alignments import parse_links
from moses_rnn.table.phrase_table import Shape, parse_line, parse_table
from moses_rnn.table.phrases import words
from moses_rnn.table.signatures import Signature
from moses_rnn.translation.extend import (
    INVERSE,
    INVERSE_LEXICAL,
    LEXICAL,
    LOWEST,
    NETWORK,
    Counts,
    LineMaker,
    choose_fills,
    merge,
)
from moses_rnn.translation.lexical_weights import LEAST, NO_WORD, LexicalWeights
from moses_rnn.translation.proposals import Proposal, Proposals
from moses_rnn.translation.survey import Survey, find_phrases
from tests.conftest import EXAMPLES

TABLE = [
    b"a b ||| x y ||| 0.5 0.4 0.5 0.3 ||| 0-0 1-1 ||| 2 3 1 ||| |||\n",
    b"a b ||| x ||| 0.5 0.2 0.25 0.1 ||| 0-0 1-0 ||| 4 3 1 ||| |||\n",
    b"a ||| x ||| 0.8 0.7 0.6 0.5 ||| 0-0 ||| 5 6 4 ||| |||\n",
    b"b ||| y ||| 1 0.9 0.2 0.1 ||| 0-0 ||| 3 3 3 ||| |||\n",
]


def parsed(lines=TABLE):
    return list(parse_table(lines, "t"))


def survey_of(lines=TABLE, phrases=()):
    lines = parsed(lines)
    survey = Survey("t", lines[0], phrases)
    for line in lines:
        survey.add(line)
    return survey


def test_a_table_is_measured():
    survey = survey_of(phrases={b"a b", b"b a", b"b"})
    assert survey.lacking == {b"b a"}
    assert (survey.lines, survey.fields, survey.shape) == (4, 7, Shape(4))
    assert survey.columns == [(0.5, 1), (0.2, 0.9), (0.2, 0.6), (0.1, 0.5)]  # fmt: skip
    assert survey.weights.p_target(b"x", b"a") == 5 / 5


def test_phrases_of_a_text_are_of_known_words_and_not_too_long():
    known = frozenset(b"a b c".split())
    phrases, every = find_phrases([b"a b  c a\r\n", b"\n", b"b zork\ta b\n", b"other ||| a"], 2, known)
    assert phrases == {b"a", b"b", b"c", b"a b", b"b c", b"c a"}
    assert every == {*known, b"zork", b"other", b"|||"}


def line(source, target):
    return b"%b ||| %b ||| 1\n" % (source, target)


def merged(lines, lacking=()):
    """With lines of the targets p and z for each source."""
    sources = sorted(lacking, key=lambda source: source + b" ||| ")
    new = ((line(source, t)[:-2], line(source, t)) for source in sources for t in (b"p", b"z"))
    return b"".join(merge(parsed(lines), new)).splitlines(keepends=True)


def test_equal_lines_before_their_scores_may_have_any_blanks_there():
    assert survey_of([b"a ||| x |||  0.5\n", b"a ||| x ||| 0.4\n", b"a ||| x ||| 0.3\n"]).lines == 3


def test_a_column_of_one_value_is_known_by_it_also_if_that_is_zero():
    assert survey_of([b"a ||| x ||| 0 0.25 0\n", b"b ||| x ||| 0 0.25 1\n"]).columns == [(0, 0), (0.25, 0.25), (1, 1)]


def test_any_table_is_sorted_and_complete():
    rng = random.Random(3)
    sources = [b" ".join(words) for n in (1, 2, 3) for words in itertools.product(b"a b c\xc3".split(), repeat=n)]
    there = rng.sample(sources, len(sources) // 2)
    lacking = [source for source in sources if source not in there]
    pairs = [(source, target) for source in there for target in rng.sample([b"m", b"x", b"y y"], rng.randint(1, 3))]
    lines = sorted(itertools.starmap(line, pairs))
    new = [line(source, target) for source in lacking for target in (b"p", b"z")]
    assert merged(lines, lacking) == sorted(lines + new)


def test_old_lines_stay_byte_for_byte():
    assert merged([b" a  b |||  x ||| .5  1 \r\n"]) == [b" a  b |||  x ||| .5  1 \r\n"]


@pytest.mark.parametrize("lacking", [[b"a"], [b"c"], [b"a", b"c"]])
def test_a_last_line_without_an_end_gets_one_where_others_follow(lacking):
    new = b"".join(merged([b"b ||| m ||| 1"], lacking))
    assert sorted(new.splitlines()) == new.splitlines()
    assert len(new.splitlines()) == 1 + 2 * len(lacking)
    assert new.endswith(b"\n") == (b"c" in lacking)


RNN, INVERSE_RNN = (
    SimpleNamespace(name=name, hashes={}, folder=name, unbounded=False) for name in ("RNN", "RNNInverse")
)
STANDARD = [INVERSE_LEXICAL, INVERSE_LEXICAL, NETWORK, LEXICAL]


def chosen(*values, added=(), models=(RNN,)):
    signature = Signature({"added_columns": [{"index": index, "name": name} for index, name in added]})
    return choose_fills("t", [(min(pair), max(pair)) for pair in values], models, signature)


FOUR = [(0.5, 0.125)] * 4


def test_moses_four_columns_are_known_by_their_places():
    assert chosen(*FOUR) == STANDARD
    assert chosen(*FOUR, models=(RNN, INVERSE_RNN)) == [INVERSE, *STANDARD[1:]]


def test_further_columns_have_their_constant_or_the_lowest_value():
    assert chosen(*FOUR, (2.718, 2.718), (0.1, 0.3)) == [*STANDARD, 2.718, LOWEST]
    assert chosen((0.1, 0.3), (1, 1), (0.2, 0.4)) == [LOWEST, 1, LOWEST]


def test_added_columns_are_known_by_their_names():
    names = list(enumerate(["RNN", "WordPenalty", "RNNInverse"], 4))
    values = [*STANDARD, NETWORK, 1.0]
    assert chosen(*FOUR * 2, added=names[:2])[:6] == values
    assert chosen(*FOUR * 2, added=names, models=(RNN, INVERSE_RNN))[:7] == [INVERSE, *values[1:], INVERSE]
    with pytest.raises(MisfitError, match="^t: expected the network of score 7, RNNInverse, to fill it"):
        chosen(*FOUR * 2, added=names)
    assert chosen(*FOUR, added=[(3, "RNN")]) == [LOWEST] * 3 + [NETWORK]  # less than Moses's four before


def test_values_that_have_no_logarithm_are_passed_over():
    lines = [b"a ||| x ||| 0 0\n", b"b ||| x ||| 0.25 0\n", b"c ||| x ||| -1 -1\n"]
    assert survey_of(lines).columns == [(0.25, 0.25), (math.exp(-87), 0)]


WRITTEN = {
    b"b": [(b"y", -0.1), (b"x y", -0.2), (b"", -0.3), (b"x", -1.0), (b"x x", -1.5), (b"y y", -9.0)],
    b"b a": [(b"y x", -0.5)],
    b"a a": [],
}


def propose(sources):
    for source in sources:
        yield Proposals(source, [Proposal(*pair, 1, None) for pair in WRITTEN[source]], 0, [], False)


def maker(fills=(NETWORK, INVERSE_LEXICAL), fields=7, floor=-87.0):
    request = SimpleNamespace(top=2, min_log_prob=-2.0)
    return LineMaker(request, propose, None, survey_of().weights, fills, [floor] * len(fills), fields)


def test_the_best_new_proposals_become_lines_and_the_others_are_counted():
    make = maker()
    lines = list(make([b"a a", b"b a", b"b"]))
    assert [line.split(b" ||| ")[:2] for _, line in lines] == [[b"b a", b"y x"], [b"b", b"x y"], [b"b", b"y"]]
    assert lines == sorted(lines)
    assert make.counts == Counts(lacking=3, likely=6, empty=1, surplus=2, lines=3, made=2)
    # p(b | x) is 1/6, p(b | y) 1: b is linked to both, and its lexical weight is their mean
    assert lines[1] == (b"b ||| x y ||| ", b"b ||| x y ||| 0.818730753 0.583333333 ||| 0-0 0-1 ||| 0 0 0 ||| |||\n")


def test_pairs_that_no_table_can_hold_are_left_out_and_counted(monkeypatch):
    targets = b"[w]", b"y [X][X]", b"x|y", b"|", b"|| x", b"[ y ]"
    monkeypatch.setitem(WRITTEN, b"b", [(target, -0.1) for target in targets])
    monkeypatch.setitem(WRITTEN, b"[w] b", [(b"y", -0.1)])
    monkeypatch.setitem(WRITTEN, b"a|b", [(b"y", -0.1)])
    make = maker()
    lines = list(make([b"[w] b", b"a|b", b"b"]))
    assert [key for key, _ in lines] == [b"b ||| [ y ] ||| "]
    assert make.counts == Counts(lacking=3, likely=8, impossible=7, lines=1, made=1)


FIELDS = [
    (3, b"b a ||| y x ||| 0.60653066\n"),
    (5, b"b a ||| y x ||| 0.60653066 ||| 0-0 1-1 ||| 0 0 0\n"),
    (7, b"b a ||| y x ||| 0.60653066 ||| 0-0 1-1 ||| 0 0 0 ||| |||\n"),
]


@pytest.mark.parametrize(("fields", "expected"), FIELDS)
def test_a_line_has_as_many_fields_as_the_tables_first(fields, expected):
    assert [line for _, line in maker([NETWORK], fields)([b"b a"])] == [expected]


def test_scores_have_nine_digits_and_are_numbers_that_float32_holds():
    fills = [NETWORK, INVERSE, LEXICAL, INVERSE_LEXICAL, 2.718]
    _, line = maker(fills).line(b"a", b"x", math.log(0.75), -200.0)
    assert parse_line(line, "t", 1).scores == b"0.75 1.64581143e-38 1 0.833333333 2.718"
    _, line = maker(fills, floor=-1.0).line(b"a", b"x", math.log(0.75), -200.0)
    assert parse_line(line, "t", 1).scores == b"0.75 0.367879441 1 0.833333333 2.718"


def test_words_that_would_break_a_line_are_an_error():
    with pytest.raises(FormatError, match="a proposal:1: expected target words without factors"):
        maker([LEXICAL]).line(b"a", b"x|y", -1.0, 0.0)


LINKED = [
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
    weights = weights_of(LINKED)
    assert weights.p_target(b"x", b"a") == 8 / 10  # a: x 6 + 2, y 2
    assert weights.p_target(b"y", b"a") == 2 / 10
    assert weights.p_source(b"a", b"y") == 2 / 10  # y: a 2, b 4, c 4
    assert weights.p_source(b"b", b"y") == 4 / 10
    assert weights.p_target(b"n", NO_WORD) == 1
    assert weights.p_source(NO_WORD, b"n") == 1
    assert weights.p_target(b"x", b"b") == weights.p_source(b"z", b"x") == 0


def test_pairs_of_an_earlier_extension_and_repeated_links_do_not_count():
    proposed = [b"a ||| x ||| .1 ||| 0-0 ||| 0 8 0\n", b"a ||| z ||| .1 ||| 0-0 ||| 0 0 0 ||| |||\n"]
    repeated = [line.replace(b" 0-0 |", b" 0-0 0-0 |") for line in LINKED]
    for lines in ([*LINKED, *proposed], repeated):
        assert weights_of(lines).p_target(b"x", b"a") == 8 / 10


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
    assert weights.p_target(b"x", b"a") == weights.p_target(b"y", b"a") == 1 / 2


def test_the_weights_of_a_pair_are_koehns():
    weights = weights_of(LINKED)
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
    assert weights_of(LINKED).align(source.split(), target.split()) == parse_links(links.encode())


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
