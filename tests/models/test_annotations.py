"""Words in their context; the numbers themselves are held by the whole network's tests."""

import torch

from moses_rnn.models.annotations import Annotator
from moses_rnn.models.batches import Batch


def annotator():
    made = Annotator(9, 3, 4).double()
    random = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for tensor in made.parameters():
            tensor.copy_(torch.randn(tensor.shape, generator=random, dtype=torch.float64))
    return made


def annotations(made, sources):
    return made.annotations(Batch.from_lists(sources), torch.float64)


def test_each_half_depends_on_its_side_alone():
    made = annotator()
    one, other = annotations(made, [[2, 3, 4]])[0], annotations(made, [[2, 3, 5]])[0]
    assert torch.equal(one[:2, :4], other[:2, :4])  # →h_1, →h_2
    assert not torch.allclose(one[:2, 4:], other[:2, 4:])  # ←h_1, ←h_2
    one, other = annotations(made, [[2, 3, 4]])[0], annotations(made, [[5, 3, 4]])[0]
    assert torch.equal(one[1:, 4:], other[1:, 4:])
    assert not torch.allclose(one[1:, :4], other[1:, :4])


def test_with_equal_layers_a_source_turned_round_is_turned_round():
    made = annotator()
    forward, backward = made.layers()
    backward.load_state_dict(forward.state_dict())
    end = 1  # read first by the backward layer, so the words between two of them are mirrored
    one, other = annotations(made, [[end, 2, 3]])[0], annotations(made, [[end, 3, 2]])[0]
    torch.testing.assert_close(one[:, 4:].flip(0), other[:, :4])


def test_batch_mates_change_nothing():
    made = annotator()
    sources = [[2, 3, 4], [5], []]
    together = annotations(made, sources)
    for row, source in enumerate(sources):
        torch.testing.assert_close(together[row, : len(source) + 1], annotations(made, [source])[0])
