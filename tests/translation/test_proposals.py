"""Targets that a network proposes, ranked by its scorer, beside those of the table."""

from dataclasses import asdict

import numpy as np
import pytest
import torch

from moses_rnn.errors import FormatError
from moses_rnn.networks.encdec import SWITCHES, EncDecStepper
from moses_rnn.networks.vocabulary import Vocabulary
from moses_rnn.table.phrase_table import parse_table
from moses_rnn.table.phrases import PLAIN, PhraseForm
from moses_rnn.translation.proposals import Converter, Proposal, Proposer, known_targets, parse_sources
from moses_rnn.translation.search import GeneratedTarget, Sampler, SamplingConfig
from tests.networks.checkpoints import encdec_checkpoint, make_scorer
from tests.networks.networks import encdec_network

SOURCE = Vocabulary([b"<unk>", b"</s>", *b"a b c d e f g".split()])
TARGET = Vocabulary([b"<unk>", b"</s>", *b"t u v w x y".split()])
T, U, V = 2, 3, 4
TABLE = [b"a b ||| t u ||| .1 ||| 0-0\n", b"a b ||| t  rare ||| .1 ||| 0-0\n", b"a b c ||| v ||| .1 ||| 0-0\n"]


def checkpoint(direction="source-to-target", form=PLAIN):
    model = encdec_network(SWITCHES["paper"], dtype=torch.float32)
    return encdec_checkpoint(model, SOURCE, TARGET, direction, {"phrases": asdict(form)})


def hypothesis(*words, ended=True):
    return GeneratedTarget(words, -99.0, ended)


WRITTEN = {
    (2, 3): [hypothesis(T, U), hypothesis(V), hypothesis(T, U), hypothesis(T, 0), hypothesis(T, T, ended=False)],
    (4,): [hypothesis(), hypothesis(V)],
}
SCORES = {b"t u": -2.0, b"v": -1.0, b"t <unk>": -3.0, b"": -0.5}


class Written:
    at_once = 1

    def __call__(self, sources):
        return [WRITTEN[tuple(source)] for source in sources]


class Scorer:
    name, meaning = "stub", "of a stub"
    unbounded = False

    def log_probs(self, pairs, tally=None):
        return np.array([SCORES[target] for target in pairs.targets])


def proposals(known=None):
    return list(Proposer(Converter(checkpoint()), Written(), Scorer(), known)([b"a b", b"c"]))


def table_of(lines, form=PLAIN):
    return parse_table(lines, "t", form=form)


def test_targets_are_ranked_by_the_scorer_with_their_multiplicities():
    first, second = proposals()
    assert first.best == [
        Proposal(b"v", -1.0, 1, None),
        Proposal(b"t u", -2.0, 2, None),
        Proposal(b"t <unk>", -3.0, 1, None),
    ]
    assert (first.without_end, first.unknown, first.is_lacking) == (1, [], False)
    assert second.best == [Proposal(b"", -0.5, 1, None), Proposal(b"v", -1.0, 1, None)]


def test_the_table_is_compared_in_the_networks_words():
    known = known_targets(table_of(TABLE), [b"a b", b"c"], Converter(checkpoint()))
    assert known == {b"a b": {b"t u", b"t <unk>"}}
    first, second = proposals(known)
    assert [proposal.in_table for proposal in first.best] == [False, True, True]
    assert [proposal.in_table for proposal in second.best] == [None, None]
    assert (first.is_lacking, second.is_lacking) == (False, True)


@pytest.mark.parametrize("variant", SWITCHES)
@pytest.mark.parametrize("direction", ["source-to-target", "target-to-source"])
def test_a_real_networks_samples_are_ranked_by_its_scorer(variant, direction):
    given = encdec_checkpoint(encdec_network(SWITCHES[variant], dtype=torch.float32), SOURCE, TARGET, direction)
    sampler = Sampler(EncDecStepper(given.network, dtype=torch.float64), SamplingConfig(samples=20))
    for proposals in Proposer(Converter(given), sampler, make_scorer(given))([b"a b c", b"d", b"d zork"]):
        (found,) = sampler([SOURCE.ids(proposals.source.split())])
        log_prob_of = {hypothesis.words: hypothesis.log_prob for hypothesis in found}
        expected = [log_prob_of[tuple(TARGET.ids(proposal.target.split()))] for proposal in proposals.best]
        assert [p.log_prob for p in proposals.best] == pytest.approx(expected, abs=1e-4)
        assert sum(p.times for p in proposals.best) + proposals.without_end == 20


FACTORED = PhraseForm(1, 0)
RULES = PhraseForm(hierarchical=True)
SIDES = [
    ("source-to-target", PLAIN, b"a\t b ", b"a b"),
    ("source-to-target", FACTORED, b"A|a B|b", b"a b"),
    ("source-to-target", FACTORED, b"a b", b"a b"),
    ("target-to-source", FACTORED, b"a|N b|V", b"a b"),
    ("source-to-target", RULES, b"[X][X]1 a [X]", b"[X][X]1 a [X]"),
]


@pytest.mark.parametrize(("direction", "form", "phrase", "expected"), SIDES)
def test_sources_are_read_as_the_network_learned_them(direction, form, phrase, expected):
    reading = Converter(checkpoint(direction, form))
    assert list(parse_sources([phrase + b"\r\n"], "s", reading)) == [expected]
    assert reading.source(expected) == expected


LINES = [
    ("source-to-target", PLAIN, b"a b ||| t zork ||| .1\n", (b"a b", b"t <unk>")),
    ("target-to-source", PLAIN, b"t zork ||| a b ||| .1\n", (b"a b", b"t <unk>")),
    ("source-to-target", FACTORED, b"A|a ||| t|N u|V ||| .1\n", (b"a", b"t u")),
    ("source-to-target", RULES, b"[X][X] a [X] ||| t [X][X] [X] ||| .1 ||| 0-1\n", (b"[X][X]1 a [X]", b"t <unk> <unk>")),
]  # fmt: skip


@pytest.mark.parametrize(("direction", "form", "line", "expected"), LINES)
def test_lines_are_read_as_the_network_learned_them(direction, form, line, expected):
    reading = Converter(checkpoint(direction, form))
    (parsed,) = table_of([line], form)
    assert reading.pair(parsed) == expected


WRONG = {
    "two lines": (PLAIN, b"a\nb\n", r"s:2: expected only a source phrase, found 'a\\nb'"),
    "gaps": (RULES, b"[X][X] a [X]\n", r"s:2: expected numbered non-terminals, found '\[X\]\[X\] a \[X\]'\n  The network reads non-terminals"),
    "no factor": (PhraseForm(2, 0), b"a|b\n", r"s:2: expected the network's source factor in every word, found 'a\|b'"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_source_is_refused(case):
    form, line, message = WRONG[case]
    with pytest.raises(FormatError, match=message):
        list(parse_sources([b"a\n", line], "s", Converter(checkpoint(form=form))))
