"""The continuous-space translation model arranged for scoring, against the scalar equations, in each precision."""

import numpy as np
import pytest
import torch

from moses_rnn.errors import PairError
from moses_rnn.inference.cstm import CstmPairs
from tests.inference.id_pairs import flat, random_pairs
from tests.models import reference_cstm as reference
from tests.models.networks import cstm_network, weights_of

PAIRS = [*random_pairs(60), ([], []), ([2], []), ([], [3, 4]), ([2], [3, 3, 4, 4, 5, 5])]  # six words at most


def score(network, pairs):
    return network.log_probs(*(flat([pair[side] for pair in pairs]) for side in (0, 1)))


@pytest.mark.parametrize(("dtype", "off"), [(torch.float64, {"abs": 1e-10}), (torch.float32, {"rel": 1e-4})])
@pytest.mark.parametrize("slots", [6, 7, 9])
def test_equals_the_scalar_equations(slots, dtype, off):
    model = cstm_network(slots, dtype=dtype)
    expected = [reference.log_prob(weights_of(model), *pair, slots) for pair in PAIRS]
    assert score(CstmPairs(model, dtype=dtype), PAIRS).tolist() == pytest.approx(expected, **off)


def test_a_pair_scores_the_same_in_any_company():
    network = CstmPairs(cstm_network(7, dtype=torch.float32))
    alone = np.concatenate([score(network, [pair]) for pair in PAIRS])
    np.testing.assert_allclose(score(network, PAIRS), alone, rtol=1e-5)
    np.testing.assert_allclose(score(network, PAIRS[::-1])[::-1], alone, rtol=1e-5)


def test_rounded_products_stay_near():
    model = cstm_network(7, dtype=torch.float32, scale=0.4)
    exact, rough = (score(CstmPairs(model, dtype=dtype), PAIRS) for dtype in (torch.float64, torch.bfloat16))
    assert 0 < np.abs(rough - exact).mean() < 0.05


def test_long_phrases_are_refused_or_score_the_floor():
    model = cstm_network(3)
    with pytest.raises(PairError, match="at most 3 words, for which the network has slots, found 6"):
        score(CstmPairs(model, dtype=torch.float64), PAIRS)
    values = score(CstmPairs(model, dtype=torch.float64, floor=-87.0), PAIRS)
    long = np.array([max(map(len, pair)) > 3 for pair in PAIRS])
    assert 0 < long.sum() < len(PAIRS)
    assert (values[long] == -87).all()
    short = [pair for pair, is_long in zip(PAIRS, long, strict=True) if not is_long]
    expected = [reference.log_prob(weights_of(model), *pair, 3) for pair in short]
    np.testing.assert_allclose(values[~long], expected, atol=1e-10)
    assert (score(CstmPairs(model, floor=-87.0), [([2] * 4, [2])]) == -87).all()
