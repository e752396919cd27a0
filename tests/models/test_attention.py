"""The alignment: where the weights go, and what padding does not."""

import torch

from moses_rnn.models.attention import Alignment, Annotations, look, weigh


def annotations(rows=2, N=3, H=2, A=4):
    random = torch.Generator().manual_seed(1)
    present = torch.ones(rows, N, dtype=torch.bool)
    present[-1, -1] = False
    h = torch.randn(rows, N, 2 * H, generator=random, dtype=torch.float64)
    return Annotations(h, torch.randn(rows, N, A, generator=random, dtype=torch.float64), present)


def test_weights_sum_to_one_over_what_is_there():
    read = annotations()
    alpha = weigh(torch.ones(2, 4, dtype=torch.float64), torch.arange(4.0).double(), read)
    torch.testing.assert_close(alpha.sum(1), torch.ones(2, dtype=torch.float64))
    assert alpha[1, 2] == 0
    assert (alpha[0] > 0).all()


def test_a_context_is_the_weighted_mean_of_the_annotations():
    read, Ws, v = annotations(), torch.ones(2, 4, dtype=torch.float64), torch.arange(4.0).double()
    alpha = weigh(Ws, v, read)
    torch.testing.assert_close(look(Ws, v, read), (alpha[:, :, None] * read.h).sum(1))


def test_padding_changes_neither_values_nor_gradients():
    read, Ws, v = annotations(), torch.ones(2, 4, dtype=torch.float64), torch.arange(4.0).double()
    expected = look(Ws, v, read)
    for tensor in read[:2]:
        tensor[1, 2] = 1e3
    torch.testing.assert_close(look(Ws, v, read), expected)


def test_rows_are_taken_and_cut():
    read = annotations()
    taken = read.take(torch.tensor([1, 1, 0]))
    assert torch.equal(taken.h[0], read.h[1])
    assert torch.equal(taken.present[2], read.present[0])
    assert read.first(2) is read
    assert len(read.first(1).Uh) == 1


def test_the_weights_have_the_shapes_of_the_equations():
    shapes = {name: tuple(tensor.shape) for name, tensor in Alignment(5, 3).named_parameters()}
    assert shapes == {"W_a": (3, 5), "U_a": (3, 10), "v": (3,)}
