"""What else networks show against the scalar equations: alignments of RNNsearch, and each source as one vector."""

import pytest
import torch

from moses_rnn.networks.rnnsearch import RnnSearchStepper
from moses_rnn.networks.seq2seq import Seq2SeqStepper
from moses_rnn.networks.vocabulary import END_ID
from tests.networks import reference_rnnsearch as reference
from tests.networks import reference_seq2seq
from tests.networks.id_pairs import flat
from tests.networks.networks import SEQ2SEQ_SWITCHES, search_network, seq2seq_network, weights_of
from tests.networks.reference import side_of


@pytest.mark.parametrize("phases", ["paper", "groundhog"])
def test_alignments_equal_the_scalar_equations(phases):
    model = search_network(phases)
    stepper = RnnSearchStepper(model, dtype=torch.float64)
    sources, target = [[2, 3, 4], [5], []], [6, 2]
    terms, row_of = stepper.encode(*flat(sources))
    for source, row in zip(sources, row_of, strict=True):
        expected = reference.alignments(weights_of(model), [*source, END_ID], [*target, END_ID], {"phases": phases})
        prefixes = stepper.start(terms)
        for step in range(len(target) + 1):
            alpha = stepper.alignment(terms, prefixes)[row].tolist()
            assert alpha[: len(source) + 1] == pytest.approx(expected[step], abs=1e-12)
            assert not any(alpha[len(source) + 1 :])
            if step < len(target):
                every = torch.arange(len(terms.s_0))
                prefixes = stepper.step(terms, prefixes, every, torch.full((len(every),), target[step]))


def first_state(weights, source, _):
    return reference.first_state(side_of(weights, "decoder"), reference.annotations(weights, [*source, END_ID]))


def last_states(weights, source, config):
    return [value for h, _ in reference_seq2seq.encoded(weights, [*source, END_ID], vars(config)) for value in h]


@pytest.mark.parametrize(
    ("model", "stepper", "expected"),
    [(search_network(), RnnSearchStepper, first_state)]
    + [(seq2seq_network(switches), Seq2SeqStepper, last_states) for switches in SEQ2SEQ_SWITCHES],
    ids=["rnnsearch", *("-".join(map(str, switches.values())) for switches in SEQ2SEQ_SWITCHES)],
)
def test_a_summary_is_what_the_decoder_begins_with(model, stepper, expected):
    """The state before the first look; or h of all layers after the source."""
    sources = [[2, 3, 4], [5], [], [6, 0], [5]]
    for source, found in zip(sources, stepper(model, dtype=torch.float64).summaries(*flat(sources)), strict=True):
        assert found.tolist() == pytest.approx(expected(weights_of(model), source, model.config), abs=1e-12)
