"""The RNN Encoder-Decoder arranged for scoring, against the scalar equations, in each precision, fused and not."""

import numpy as np
import pytest
import torch

from moses_rnn.inference.encdec import EncDecStepper
from moses_rnn.models.hardware import COMPILED
from moses_rnn.models.variants import SWITCHES
from moses_rnn.models.vocabulary import END_ID
from tests.inference.id_pairs import random_pairs, score
from tests.models import reference
from tests.models.networks import CUSTOM, encdec_network, weights_of


@pytest.mark.parametrize("switches", CUSTOM, ids=lambda s: "-".join(s.values()))
def test_equals_the_scalar_equations(switches):
    model = encdec_network(switches, dtype=torch.float64)
    pairs = random_pairs(60)
    found = score(EncDecStepper(model, dtype=torch.float64), pairs)
    weights = weights_of(model)
    for value, (source, target) in zip(found, pairs, strict=True):
        assert value == pytest.approx(
            reference.log_prob(weights, [*source, END_ID], [*target, END_ID], switches), abs=1e-11
        )


def test_bfloat16_products_stay_near():
    model = encdec_network(SWITCHES["paper"], dtype=torch.float32)
    pairs = random_pairs(300)
    exact = score(EncDecStepper(model, dtype=torch.float64), pairs)
    rough = score(EncDecStepper(model, dtype=torch.bfloat16), pairs)
    assert np.abs(rough - exact).mean() < 0.02


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # inside torch, where it compiles
def test_compiled_and_eager_work_agree():
    model = encdec_network(SWITCHES["paper"], dtype=torch.float32)
    pairs = random_pairs(100)
    fused = EncDecStepper(model, kernel=COMPILED)
    np.testing.assert_allclose(score(fused, pairs), score(EncDecStepper(model), pairs), rtol=1e-5)
