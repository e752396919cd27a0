"""The ranker arranged for scoring, against the scalar equations, in each precision."""

import numpy as np
import pytest
import torch

from moses_rnn.errors import PairError
from moses_rnn.inference.ranker import RankerPairs
from tests.inference.id_pairs import flat, random_pairs
from tests.models import reference_ranker as reference
from tests.models.networks import ranker_network, weights_of

PAIRS = [*random_pairs(60), ([], []), ([2], []), ([], [3, 4]), ([2], [3, 3, 4, 4, 5, 5])]  # six words at most


def score(network, pairs):
    return network.log_probs(*(flat([pair[side] for pair in pairs]) for side in (0, 1)))


@pytest.mark.parametrize(("dtype", "off"), [(torch.float64, {"abs": 1e-10}), (torch.float32, {"rel": 1e-4})])
@pytest.mark.parametrize("slots", [6, 7, 9])
def test_equals_the_scalar_equations(slots, dtype, off):
    model = ranker_network(slots, dtype=dtype)
    expected = [reference.score(weights_of(model), *pair, slots) for pair in PAIRS]
    assert max(expected) > 0 > min(expected)
    assert score(RankerPairs(model, dtype=dtype), PAIRS).tolist() == pytest.approx(expected, **off)


def test_a_pair_scores_the_same_in_any_company():
    network = RankerPairs(ranker_network(7, dtype=torch.float32))
    alone = np.concatenate([score(network, [pair]) for pair in PAIRS])
    np.testing.assert_allclose(score(network, PAIRS), alone, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(score(network, PAIRS[::-1])[::-1], alone, rtol=1e-5, atol=1e-6)


def test_rounded_products_stay_near():
    model = ranker_network(7, dtype=torch.float32, scale=0.4)
    exact, rough = (score(RankerPairs(model, dtype=dtype), PAIRS) for dtype in (torch.float64, torch.bfloat16))
    assert 0 < np.abs(rough - exact).mean() < 0.05


def test_long_phrases_are_refused_or_score_the_floor():
    model = ranker_network(3)
    with pytest.raises(PairError, match="at most 3 words, for which the network has slots, found 6"):
        score(RankerPairs(model), PAIRS)
    assert (score(RankerPairs(model, floor=-87.0), [([2] * 4, [2])]) == -87).all()
