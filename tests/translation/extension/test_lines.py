"""Lines made of what a network proposes; the network is a table of what it writes."""

import math

import numpy as np
import pytest

from moses_rnn.errors import FormatError
from moses_rnn.formats.phrase_table import parse_line
from moses_rnn.translation.extension.columns import INVERSE, INVERSE_LEXICAL, LEXICAL, NETWORK
from moses_rnn.translation.extension.lines import Counts, LineForm, LineMaker
from moses_rnn.translation.extension.sources import Wanted
from moses_rnn.translation.extension.survey import look_over
from moses_rnn.translation.proposals import Proposal, Proposals
from tests.translation.extension.lines import parsed

WRITTEN = {
    b"b": [(b"y", -0.1), (b"x y", -0.2), (b"", -0.3), (b"x", -1.0), (b"x x", -1.5), (b"y y", -9.0)],
    b"b a": [(b"y x", -0.5)],
    b"a a": [],
}


def propose(sources):
    for source in sources:
        yield Proposals(source, [Proposal(*pair, 1, None) for pair in WRITTEN[source]], 0, [], False)


class Inverse:
    """log p(source | target): minus the words of both."""

    def log_probs(self, sources, targets, tally=None):
        return np.array([[-float(len(pair.split()))] for pair in map(b" ".join, zip(sources, targets, strict=True))])


def form(fills=(NETWORK, INVERSE_LEXICAL), fields=7, marked=False):
    return LineForm(fields, fills, look_over("t", parsed(), []).links.weights(), marked)


def maker(top=2, least=-2.0, inverse=None, **of_form):
    make = LineMaker(propose, inverse, form(**of_form), top, least)
    return make, lambda *sources: list(make(sources))


def test_the_best_new_proposals_become_lines_and_the_others_are_counted():
    make, lines_for = maker()
    lines = lines_for(Wanted(b"a a"), Wanted(b"b a"), Wanted(b"b", frozenset([b"y"]), b"3"))
    assert [line.line.split(b" ||| ")[:2] for line in lines] == [[b"b a", b"y x"], [b"b", b"x y"], [b"b", b"x"]]
    assert lines == sorted(lines)
    assert make.counts == Counts(few=1, lacking=2, likely=6, there=1, empty=1, surplus=1, lines=3, extended=1, made=1)


def test_every_field_is_filled():
    _, line, _ = maker()[1](Wanted(b"b a"), Wanted(b"b", frozenset([b"y"]), b"3"))
    # p(b | x) is 1/6, p(b | y) 1: b is linked to both, and its lexical weight is their mean
    assert line.key == b"b ||| x y ||| "
    assert line.line == b"b ||| x y ||| 0.818730753 0.583333333 ||| 0-0 0-1 ||| 0 3 0 ||| |||\n"


FIELDS = [
    (3, b"b a ||| y x ||| 0.606530660\n"),
    (4, b"b a ||| y x ||| 0.606530660 ||| 0-0 1-1\n"),
    (5, b"b a ||| y x ||| 0.606530660 ||| 0-0 1-1 ||| 0 0 0\n"),
    (6, b"b a ||| y x ||| 0.606530660 ||| 0-0 1-1 ||| 0 0 0 |||\n"),
    (7, b"b a ||| y x ||| 0.606530660 ||| 0-0 1-1 ||| 0 0 0 ||| |||\n"),
]


@pytest.mark.parametrize(("fields", "expected"), FIELDS)
def test_a_line_has_as_many_fields_as_the_tables_first(fields, expected):
    (new,) = maker(fields=fields, fills=[NETWORK])[1](Wanted(b"b a"))
    assert new.line == expected.replace(b"0.606530660", b"%.9g" % math.exp(-0.5))


def test_the_inverse_network_is_asked_of_the_same_pairs():
    (new,) = maker(inverse=Inverse(), fills=[INVERSE])[1](Wanted(b"b a"))
    assert float(parse_line(new.line, "t", 1).scores) == pytest.approx(math.exp(-4))
    assert maker(inverse=Inverse(), fills=[INVERSE])[1](Wanted(b"a a")) == []


def test_a_column_says_that_a_line_is_new():
    (new,) = maker(fills=[NETWORK], marked=True)[1](Wanted(b"b a"))
    assert parse_line(new.line, "t", 1).scores == b"0.60653066 2.718281828"


def test_words_that_would_break_a_line_are_an_error():
    with pytest.raises(FormatError, match="a proposal:1: expected target words without factors"):
        form([LEXICAL]).line(Wanted(b"a"), b"x|y", -1.0, None)
