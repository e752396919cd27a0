"""Networks that write: word by word they say what they score, and so do search and sampling, on any device."""

import itertools

import numpy as np
import pytest
import torch

from moses_rnn.analysis.inspection import stepped_log_probs
from moses_rnn.errors import CheckpointError
from moses_rnn.networks.batches import take_rows
from moses_rnn.networks.compute import Compute
from moses_rnn.networks.steps import Candidates, Stepper, node_blocks
from moses_rnn.networks.vocabulary import END_ID
from moses_rnn.translation.search import BeamConfig, BeamSearch, Sampler, SamplingConfig
from tests.contract.rows import CASES, FIRST
from tests.networks import reference, reference_rnnsearch, reference_seq2seq
from tests.networks.id_pairs import flat, random_pairs, score
from tests.networks.networks import weights_of
from tests.networks.pretended_device import DEVICE, pretended_device

WRITERS = [case for case in FIRST if case.architecture.stepper]
ALL_WRITERS = pytest.mark.parametrize("case", [case for case in CASES if case.architecture.stepper], ids=str)
EACH = pytest.mark.parametrize("case", WRITERS, ids=str)
SOURCES = [[2, 3, 4], [], [6, 0], [2], [2, 3, 4]]


def stepper_of(case, device="cpu", dtype=torch.float64):
    return case.architecture.stepper(case.make(dtype if dtype == torch.float64 else torch.float32), device, dtype)


@ALL_WRITERS
def test_the_score_of_a_pair_is_the_sum_of_its_steps(case):
    stepper = stepper_of(case)
    pairs = random_pairs(12)
    for (source, target), expected in zip(pairs, score(stepper, pairs), strict=True):
        words = stepped_log_probs(stepper, source, target)
        assert len(words) == len(target) + 1
        assert sum(words) == pytest.approx(expected, rel=1e-10)


@ALL_WRITERS
def test_prefixes_have_distributions_and_alignments_and_can_be_taken(case):
    stepper = stepper_of(case)
    encoded, row_of = stepper.encode(*flat(SOURCES))
    assert row_of[0] == row_of[4]  # an equal source is not read twice
    prefixes = stepper.step(
        encoded, stepper.start(encoded), torch.tensor(row_of[[0, 1, 1, 2, 3]]), torch.tensor([2, 3, 4, 5, 6])
    )
    assert prefixes.sources.tolist() == row_of[[0, 1, 1, 2, 3]].tolist()
    log_probs = stepper.next_log_probs(encoded, prefixes)
    assert log_probs.dtype == torch.float64
    np.testing.assert_allclose(log_probs.exp().sum(1), 1)
    torch.testing.assert_close(stepper.next_log_probs(encoded, take_rows(prefixes, slice(1, 3))), log_probs[1:3])
    some = torch.tensor([1, 0, 1])
    starts = stepper.next_log_probs(encoded, stepper.start(encoded))
    taken = take_rows(encoded, some)
    torch.testing.assert_close(stepper.next_log_probs(taken, stepper.start(taken)), starts[some])
    rows, words = torch.tensor([0, 0, 2, 3, 3, 4]), torch.tensor([1, 4, 0, 2, 7, 1])  # no word follows the prefix 1
    asked = encoded, prefixes, rows, words, node_blocks(rows.numpy(), 5, stepper.vocabulary_size)
    for own in (stepper.word_log_probs(*asked), Stepper.word_log_probs(stepper, *asked)):
        torch.testing.assert_close(own.double(), log_probs[rows, words], rtol=1e-10, atol=1e-12)
    if (alpha := stepper.alignment(encoded, prefixes)) is not None:
        assert (alpha > 0).sum(1).tolist() == [4, 1, 1, 3, 2]  # the words of the source, and its end
        np.testing.assert_allclose(alpha.sum(1), 1)


def last_states(weights, source, config):
    return [value for h, _ in reference_seq2seq.encoded(weights, source, config) for value in h]


def first_state(weights, source, _):
    annotated = reference_rnnsearch.annotations(weights, source)
    return reference_rnnsearch.first_state(reference.side_of(weights, "decoder"), annotated)


SUMMARIES = {  # what the decoder begins with
    "encdec": reference.summary,
    "encdec of other cells": reference.summary,
    "rnnsearch": first_state,
    "seq2seq": last_states,
}


@ALL_WRITERS
def test_a_summary_is_what_the_decoder_begins_with(case, monkeypatch):
    network = case.make()
    model, compute = case.opened(network), Compute(precision="fp64")
    if case.key not in SUMMARIES:
        with pytest.raises(CheckpointError, match="expected a network that represents a sentence as one vector"):
            model.summaries(SOURCES, compute)
        return
    monkeypatch.setattr("moses_rnn.models.model.SUMMARISED", 2)
    weights, config = weights_of(network), vars(network.config)
    expected = [SUMMARIES[case.key](weights, [*source, END_ID], config) for source in SOURCES]
    np.testing.assert_allclose(model.summaries(SOURCES, compute), expected, atol=1e-12)
    assert model.summaries([], compute).shape == (0, len(expected[0]))


@EACH
def test_candidates_are_normalised_over_alone(case):
    stepper = stepper_of(case)
    encoded, row_of = stepper.encode(*flat(SOURCES))
    prefixes = stepper.step(encoded, stepper.start(encoded), torch.tensor(row_of[:4]), torch.tensor([2, 3, 4, 5]))
    allowed = torch.tensor([[True, True, i < 2, i != 1] for i in range(max(row_of) + 1)])
    columns = Candidates(torch.tensor([0, END_ID, 3, 6]), allowed)
    among = stepper.next_log_probs(encoded, prefixes)[:, columns.words]
    expected = among.masked_fill(~allowed[prefixes.sources], -torch.inf).log_softmax(1)
    torch.testing.assert_close(stepper.next_log_probs(encoded, prefixes, columns), expected)


def write(stepper):
    """What search and sampling find for `SOURCES`."""
    search = BeamSearch(stepper, BeamConfig(width=5, best=3, max_words=4))
    sampler = Sampler(stepper, SamplingConfig(samples=9, max_words=6))
    return search(SOURCES), sampler(SOURCES)


@EACH
def test_what_is_written_has_its_own_score(case):
    stepper = stepper_of(case)
    for found in write(stepper):
        written = [(source, h) for source, each in zip(SOURCES, found, strict=True) for h in each if h.ended]
        assert len(written) > 4
        scores = score(stepper, [(source, list(h.words)) for source, h in written])
        np.testing.assert_allclose([h.log_prob for _, h in written], scores, rtol=1e-10)


@EACH
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_writing_and_scoring_keep_their_operands_together(case, dtype):
    pairs = [([2, 3, 4], [5] * 7), ([6], [7])]
    with pretended_device():
        there = stepper_of(case, DEVICE, dtype)
        values, written = score(there, pairs), write(there)
    here = stepper_of(case, dtype=dtype)
    np.testing.assert_allclose(values, score(here, pairs), rtol=1e-6)
    for one, other in zip(itertools.chain(*written), itertools.chain(*write(here)), strict=True):
        assert [(target.words, target.ended) for target in one] == [(target.words, target.ended) for target in other]
        assert [target.log_prob for target in one] == pytest.approx([target.log_prob for target in other], rel=1e-6)
