"""Candidate lists: what they hold, and a search among them held against all targets of their words."""

import itertools
import math

import pytest
import torch

from moses_rnn.formats.lexicon import Lexicon
from moses_rnn.inference.encdec import EncDecStepper
from moses_rnn.inference.ensembles import EnsembleStepper, Member
from moses_rnn.inference.rnnsearch import RnnSearchStepper
from moses_rnn.inference.seq2seq import Seq2SeqStepper
from moses_rnn.models.variants import SWITCHES
from moses_rnn.models.vocabulary import END_ID
from moses_rnn.translation.beam_search import BeamConfig, BeamSearch
from moses_rnn.translation.candidates import CandidateLists
from tests.models import reference, reference_ensembles, reference_rnnsearch, reference_seq2seq
from tests.models.networks import TWO_LAYERS, encdec_network, search_network, seq2seq_network, weights_of
from tests.producers.pairs import SOURCE, TARGET

CPU = torch.device("cpu")
LEXICON = Lexicon(
    {
        b"s2": [(b"t6", 0.5), (b"t3", 0.3), (b"t7", 0.2)],
        b"s3": [(b"t9", 0.9), (b"t5", 0.1)],  # t9 is outside the shortlist
        b"rare": [(b"t7", 1.0)],  # as is this source word
    }
)


def lists(frequent=2, of_each=2, tokens=0):
    return CandidateLists(TARGET, LEXICON, frequent, of_each, tokens)


def test_candidates_are_frequent_words_and_translations():
    assert lists().of([b"s2", b"s3", b"s4"]) == (5, 6)  # t5 and t6; t2 and t3 are frequent
    assert lists(of_each=3).of([b"s2", b"rare"]) == (6, 7)
    assert lists(frequent=0, of_each=1).of([b"s2", b"s2", b"rare"]) == (6, 7)
    assert lists(of_each=0).of([b"s2", b"rare"]) == ()
    assert lists(frequent=100).of([b"s2"]) == ()


def test_tokens_are_candidates_always():
    assert lists(frequent=1, tokens=2).columns([()], CPU).words.tolist() == [0, 1, 2, 3, 4]


def test_columns_have_each_sources_candidates():
    columns = lists().columns([(5, 6), (), (7,)], CPU)
    assert columns.words.tolist() == [0, 1, 2, 3, 5, 6, 7]
    allowed = [[w for w, may in zip(columns.words.tolist(), row, strict=True) if may] for row in columns.allowed]
    assert allowed == [[0, 1, 2, 3, 5, 6], [0, 1, 2, 3], [0, 1, 2, 3, 7]]
    assert lists(frequent=100).columns([(), ()], CPU).allowed.all()


ENCDEC, SEARCH, SEQ2SEQ = encdec_network(SWITCHES["paper"]), search_network(), seq2seq_network(TWO_LAYERS)


def members():
    return {
        "encdec": (
            EncDecStepper(ENCDEC, dtype=torch.float64),
            lambda *ids: reference.distributions(weights_of(ENCDEC), *ids, SWITCHES["paper"]),
        ),
        "rnnsearch": (
            RnnSearchStepper(SEARCH, dtype=torch.float64),
            lambda *ids: reference_rnnsearch.distributions(weights_of(SEARCH), *ids, {"phases": "paper"}),
        ),
        "seq2seq": (
            Seq2SeqStepper(SEQ2SEQ, dtype=torch.float64),
            lambda *ids: reference_seq2seq.distributions(weights_of(SEQ2SEQ), *ids, TWO_LAYERS),
        ),
    }


def restricted(distribution, candidates):
    """p over the candidates alone, by id."""
    total = sum(distribution[word] for word in candidates)
    return [distribution[word] / total if word in candidates else 0.0 for word in range(len(distribution))]


def exact(steps_of, source, candidates, longest):
    """log p of every target of candidates, at most so many words, by scalar equations."""
    words = [word for word in candidates if word != END_ID]
    for length in range(longest + 1):
        for target in itertools.product(words, repeat=length):
            ids = [*target, END_ID]
            steps = steps_of([*source, END_ID], ids, candidates)
            yield target, sum(math.log(step[word]) for step, word in zip(steps, ids, strict=True))


def of_one(distributions):
    return lambda source, target, candidates: [restricted(p, candidates) for p in distributions(source, target)]


def hold(stepper, steps_of):
    """A beam that loses nothing ranks the targets of each source's candidates as the equations do."""
    sources, further = [[2, 3], [4]], [(5,), ()]
    columns = lists(frequent=1).columns(further, CPU)
    search = BeamSearch(stepper, BeamConfig(width=400, best=12, max_words=2))
    for source, mine, hypotheses in zip(sources, further, search.among(sources, columns), strict=True):
        expected = dict(exact(steps_of, source, [0, 1, 2, *mine], 2))
        ranked = sorted(expected, key=lambda target: -expected[target])[:12]
        ended = [h for h in hypotheses if h.ended]
        assert [h.words for h in ended] == ranked
        assert [h.log_prob for h in ended] == pytest.approx([expected[words] for words in ranked], abs=1e-10)


@pytest.mark.parametrize("network", members())
def test_a_search_is_among_candidates_and_normalised_over_them(network):
    stepper, distributions = members()[network]
    hold(stepper, of_one(distributions))


@pytest.mark.parametrize("combination", ["geometric", "mean-log", "arithmetic"])
def test_each_member_of_an_ensemble_is_normalised_over_candidates(combination):
    (first, of_first), (second, of_second) = (members()[name] for name in ("encdec", "rnnsearch"))
    ids = torch.arange(len(SOURCE)).numpy()
    stepper = EnsembleStepper([Member(first, ids), Member(second, ids)], combination)

    def steps_of(source, target, candidates):
        for of_both in zip(of_first(source, target), of_second(source, target), strict=True):
            among = [[restricted(p, candidates)[word] for word in candidates] for p in of_both]
            combined = reference_ensembles.combine(among, combination, None)
            yield dict(zip(candidates, map(math.exp, combined), strict=True))

    hold(stepper, steps_of)


@pytest.mark.parametrize("network", members())
def test_all_words_as_candidates_are_no_restriction(network):
    stepper, _ = members()[network]
    search = BeamSearch(stepper, BeamConfig(width=4, best=3, max_words=5))
    sources = [[2, 3], [], [4, 4, 0]]
    columns = lists(frequent=100).columns([()] * 3, CPU)
    assert search.among(sources, columns) == search(sources)
