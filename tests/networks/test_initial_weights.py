"""The weights that each network begins with, as its paper has them."""

import pytest
import torch

from moses_rnn.networks.bengio import Bengio, BengioConfig
from moses_rnn.networks.cells import CellConfig, CellEncDec
from moses_rnn.networks.cslm import Cslm, CslmConfig
from moses_rnn.networks.cstm import Cstm, CstmConfig
from moses_rnn.networks.encdec import EncDec, EncDecConfig
from moses_rnn.networks.ranker import Ranker, RankerConfig
from moses_rnn.networks.rnnlm import Rnnlm, RnnlmConfig
from moses_rnn.networks.rnnsearch import RnnSearch, RnnSearchConfig
from moses_rnn.networks.seq2seq import Seq2Seq, Seq2SeqConfig

UNIFORM = {  # within a bound, all of them
    "cslm": (lambda: Cslm(CslmConfig(500, 7, 32, 64, 48), seed=1), 0.01),
    "bengio": (lambda: Bengio(BengioConfig(500), seed=1), 0.01),
    "cstm": (lambda: Cstm(CstmConfig(500, 8), seed=1), 0.01),
    "ranker": (lambda: Ranker(RankerConfig(500, 8), seed=1), 0.1),
    "seq2seq": (lambda: Seq2Seq(Seq2SeqConfig(300, 200, 30, 20, 2), seed=1), 0.08),
}
GATED = {"hidden_size": 60, "embedding_size": 30, "maxout_size": 20, "output_rank": 25}


@pytest.mark.parametrize(("make", "bound"), UNIFORM.values(), ids=UNIFORM)
def test_weights_are_uniform_within_their_bound(make, bound):
    model = make()
    for most in (bound, 0.3):
        every = torch.cat([tensor.detach().flatten() for tensor in model.parameters()])
        assert 0.99 * most < every.abs().max() <= most
        assert every.std().item() == pytest.approx(most / 3**0.5, rel=0.02)
        assert every.mean().abs() < 0.02 * most
        model.initialise(1, 0.3)


@pytest.mark.parametrize(
    "model",
    [EncDec(EncDecConfig(2000, 2000, **GATED), seed=1), RnnSearch(RnnSearchConfig(2000, 2000, 60, 30, 40, 20), seed=1)],
    ids=["encdec", "rnnsearch"],
)
def test_recurrent_matrices_are_orthogonal_biases_zero_and_the_rest_gaussian(model):
    for name, tensor in model.named_parameters():
        if tensor.dim() == 1:
            assert not tensor.any(), name
        elif ".U" in name and "align" not in name:
            torch.testing.assert_close(tensor @ tensor.T, torch.eye(60), atol=1e-4, rtol=0)
        else:
            expected = 0.001 if "align" in name else 0.01
            assert tensor.std().item() == pytest.approx(expected, rel=0.1), name


def test_a_recurrent_language_model_is_gaussian():
    for tensor in Rnnlm(RnnlmConfig(500, 60), seed=1).parameters():
        assert tensor.std().item() == pytest.approx(0.1, rel=0.05)


def test_other_cells_begin_as_they_shall():
    def of_cell(cell, **switches):
        return CellEncDec(CellConfig(9, 8, **GATED, cell=cell, decoder_reset=None, **switches), seed=3)

    for part in (of_cell("relu").encoder, of_cell("relu").decoder):
        assert torch.equal(part.U, torch.eye(60))
    for part in (of_cell("lstm", forget_bias=1.5).encoder, of_cell("lstm", forget_bias=1.5).decoder):
        assert part.b_f.tolist() == [1.5] * 60
        assert not part.b_i.any()
        torch.testing.assert_close(part.U_o @ part.U_o.T, torch.eye(60), atol=1e-4, rtol=0)
    for share, leaking in ((0.0, 0), (0.25, 15), (1.0, 60)):
        model, again = (of_cell("leaky", leaky_share=share) for _ in range(2))
        for part, same in ((model.encoder, again.encoder), (model.decoder, again.decoder)):
            assert ((part.alpha[:leaking] >= 0.02) & (part.alpha[:leaking] <= 0.2)).all()
            assert not part.alpha[leaking:].any()
            assert torch.equal(part.alpha, same.alpha)
    assert not torch.equal(model.encoder.alpha, model.decoder.alpha)
    assert "encoder.alpha" not in dict(model.named_parameters())  # it is never learned
