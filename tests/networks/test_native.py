"""The native core's networks against the scalar equations, with every instruction set that this machine can run."""

import numpy as np
import pytest
import torch

from moses_rnn.networks.encdec import SWITCHES, EncDec, EncDecConfig, EncDecStepper, NativeEncDec
from tests.networks.id_pairs import flat, random_pairs, score
from tests.networks.native_kernels import CORE, EACH, FLOAT32, core_of, needs_native
from tests.networks.networks import CUSTOM, encdec_network

pytestmark = needs_native
SIZES = {"hidden_size": 100, "embedding_size": 35, "maxout_size": 45, "output_rank": 50}


def native_scores(model, pairs, instructions, product_dtype=torch.float32):
    sources, targets = zip(*pairs, strict=True)
    precision = "bf16" if product_dtype == torch.bfloat16 else "fp32"
    return NativeEncDec(model, core_of(instructions), precision).log_probs(flat(sources), flat(targets))


def larger_network(switches=SWITCHES["paper"], scale=0.1, words=(40, 777)):
    """One that fills no panel and no vector: 100 hidden units, 777 target words."""
    model = EncDec(EncDecConfig(*words, **SIZES, variant="custom", **switches), seed=1)
    random = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for tensor in model.parameters():
            tensor.add_(torch.randn(tensor.shape, generator=random) * scale)
    return model


@pytest.mark.parametrize("switches", CUSTOM, ids=lambda s: "-".join(s.values()))
@EACH
def test_equals_float64_in_each_precision(kind, switches):
    model = larger_network(switches)
    pairs = random_pairs(700, vocabulary=(40, 777))
    exact = score(EncDecStepper(model, dtype=torch.float64), pairs)
    values = native_scores(model, pairs, *kind)
    if kind[1] == torch.bfloat16:
        rounded = score(EncDecStepper(model, dtype=torch.bfloat16), pairs)
        assert np.abs(values - exact).mean() < 1.5 * np.abs(rounded - exact).mean() + 1e-4
    else:
        assert np.abs(values - exact).max() < 1e-4


@EACH
def test_more_pairs_than_a_part_in_any_order_with_repeats(kind, monkeypatch):
    model = larger_network(words=(12, 9))
    pairs = random_pairs(6000, vocabulary=(12, 9), longest=3)
    values = native_scores(model, pairs, *kind)
    order = np.random.default_rng(0).permutation(len(pairs))
    assert (native_scores(model, [pairs[i] for i in order], *kind) == values[order]).all()
    few = list(range(0, 6000, 997))
    assert [native_scores(model, [pairs[i]], *kind)[0] for i in few] == values[few].tolist()


def test_long_phrases_and_one_source_with_many_targets():
    model = larger_network()
    long = [[2 + i % 30 for i in range(3000)]]
    pairs = [(long[0], [5]), ([], long[0]), *(([7, 8], [2 + i % 700, 2 + i // 700]) for i in range(5000))]
    values = native_scores(model, pairs, CORE.instructions)
    some = [0, 1, 2, 700, 5001]
    exact = score(EncDecStepper(model, dtype=torch.float64), [pairs[i] for i in some])
    np.testing.assert_allclose(values[some], exact, rtol=1e-5)


@pytest.mark.parametrize("name", ["decoder.U", "decoder.G_l", "decoder.b_G", "encoder.V"])
def test_what_is_no_number_stays_none(name):
    model = encdec_network(SWITCHES["paper"], dtype=torch.float32)
    with torch.no_grad():
        dict(model.named_parameters())[name].view(-1)[-1] = torch.nan
    assert not np.isfinite(native_scores(model, [([2], [3, 4])], CORE.instructions)).any()


@pytest.mark.parametrize("switches", CUSTOM, ids=lambda s: "-".join(s.values()))
def test_tiles_written_out_in_software(software_tiles, switches):
    model = larger_network(switches)
    pairs = random_pairs(80, vocabulary=(40, 777))
    exact = score(EncDecStepper(model, dtype=torch.float64), pairs)
    assert 0 < np.abs(native_scores(model, pairs, software_tiles, torch.bfloat16) - exact).max() < 0.2


@FLOAT32
def test_a_unit_that_is_no_number_is_not_left_for_its_partner(instructions):
    """Of two units of which maxout takes the larger, one is inf - inf behind word 3."""
    model = encdec_network(SWITCHES["paper"], dtype=torch.float32)
    with torch.no_grad():
        for name in ("W", "W_z", "W_r", "O_y"):
            getattr(model.decoder, name).zero_()
        model.decoder.embedding[3] = 3e38
        model.decoder.O_y[0, :2] = torch.tensor([10.0, -10.0])
    values = native_scores(model, [([2], [3]), ([2], [4])], instructions)
    assert np.isnan(values).tolist() == [True, False]
