"""What is scored is annotated first: by links, in either direction, each pair for itself."""

import numpy as np
import pytest

from moses_rnn.errors import InputError
from moses_rnn.models.base import Tally
from moses_rnn.models.phrases import PhraseScorer
from moses_rnn.models.rare_words import KINDS
from moses_rnn.moses.alignments import parse_links, transposed
from moses_rnn.networks.compute import HERE
from moses_rnn.table.table_blocks import Pairs
from tests.models.rare import ALIGNED, READ, WRITTEN, deep_lstm, rare_model
from tests.models.reference_rare_words import annotate

SOURCES, TARGETS, LINKS = map(list, zip(*ALIGNED, strict=True))


def scores(model, sources=SOURCES, targets=TARGETS, links=LINKS, tally=None):
    return model.make_scorer().log_probs(Pairs(sources, targets, links), tally)


def of_tokens(model):
    """What the network says of pairs that were annotated by the table of kinds."""
    plain = PhraseScorer(model, model.make_pair_network(HERE))
    rare = model.rare
    annotated = [
        annotate(rare.kind, rare.window, source.split(), target.split(), parse_links(links), READ, WRITTEN)
        for source, target, links in ALIGNED
    ]
    return plain.log_probs(Pairs(*([b" ".join(pair[side]) for pair in annotated] for side in (0, 1))))


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_are_annotated_by_their_links(kind):
    model = rare_model(kind)
    np.testing.assert_allclose(scores(model), of_tokens(model), rtol=1e-6)


def test_a_model_of_the_other_direction_transposes_links():
    model = rare_model(direction="target-to-source")
    swapped = [source.replace(b"s", b"t") for source in SOURCES], [target.replace(b"t", b"s") for target in TARGETS]
    expected = []
    plain = PhraseScorer(model, model.make_pair_network(HERE))
    for source, target, text in zip(*swapped, LINKS, strict=True):
        links = transposed(parse_links(text))
        read, written = annotate("posunk", 2, target.split(), source.split(), links, READ, WRITTEN)
        expected.append(plain.log_probs(Pairs([b" ".join(written)], [b" ".join(read)]))[0])
    np.testing.assert_allclose(scores(model, *swapped), expected, rtol=1e-6)
    assert len({*expected}) == len(expected)


def test_a_network_that_reads_backwards_has_pointers_into_the_source_as_it_stands():
    scored = {}
    for order in ("reversed", "forward"):
        model = deep_lstm(source_order=order)
        scored[order] = scores(model)
        np.testing.assert_allclose(scored[order], of_tokens(model), rtol=1e-6)
    assert scored["reversed"][0] != scored["forward"][0]
    restored = model.rare.restore([b"t2", b"<unk:1>"], [b"s2", b"zork", b"bork"], frozenset(READ), bytes)
    assert restored.words == [b"t2", b"bork"]


def test_pairs_with_unknown_words_are_counted():
    for kind in KINDS:
        tally = Tally()
        scores(rare_model(kind), tally=tally)
        assert tally.unknown == 4


def test_pairs_without_links_are_refused_where_these_are_needed():
    with pytest.raises(InputError, match=r"^SEARCH: expected pairs with word alignments, .* \(posunk\), found pairs"):
        rare_model().make_scorer().log_probs(Pairs(SOURCES, TARGETS))
    assert rare_model("noalign").make_scorer().log_probs(Pairs(SOURCES, TARGETS)).shape == (len(ALIGNED),)
