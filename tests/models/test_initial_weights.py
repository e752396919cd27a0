import pytest
import torch
from torch import nn

from moses_rnn.models.initial_weights import draw_uniformly, unset


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.matrix, self.bias = unset(300, 40), unset(50)


def drawn(seed, deviation):
    model = Network()
    draw_uniformly(model, seed, deviation)
    return [tensor.detach() for tensor in model.parameters()]


def test_a_tensor_is_to_be_learned():
    tensor = unset(3, 4)
    assert isinstance(tensor, nn.Parameter)
    assert tensor.requires_grad
    assert (tensor.shape, tensor.dtype) == ((3, 4), torch.float32)


@pytest.mark.parametrize("deviation", [0.01, 0.1])
def test_weights_are_uniform_within_their_bound(deviation):
    weights = torch.cat([tensor.flatten() for tensor in drawn(1, deviation)])
    assert 0.99 * deviation < weights.abs().max() <= deviation
    assert weights.mean().abs() < 0.05 * deviation
    assert weights.std() == pytest.approx(2 * deviation / 12**0.5, rel=0.02)


def test_equal_seeds_give_equal_weights_and_others_others():
    first, again, other = drawn(1, 0.1), drawn(1, 0.1), drawn(2, 0.1)
    assert all(map(torch.equal, first, again))
    assert not any(map(torch.equal, first, other))
