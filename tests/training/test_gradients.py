"""The gradient of a minibatch is the same however many threads, parts and ranks compute it."""

import dataclasses

import pytest
import torch

from moses_rnn.training.descent import Gradients
from moses_rnn.training.ranks import ALONE, Threads
from moses_rnn.training.tasks import PhrasePairs
from tests.training.pretended_ranks import in_ranks
from tests.training.small import FAST, network


def sums_and_gradients(corpus, rows, ranks=ALONE, **changes):
    config = dataclasses.replace(FAST, **changes)
    task = PhrasePairs(network(corpus), corpus, config)
    task.model.initialise(1, 0.3)
    gradients = Gradients(task, config, Threads(config.threads), ranks)
    sums = gradients.compute(rows, 7, lambda: 100.0 + ranks.rank)
    return sums, [tensor.grad.clone() for tensor in task.model.parameters()]


def check_equal(one, other, tolerance=1e-5):
    sums, gradients = one
    other_sums, other_gradients = other
    assert sums.tokens == other_sums.tokens
    assert sums.nats == pytest.approx(other_sums.nats, rel=1e-6)
    assert sums.squares == pytest.approx(other_sums.squares, rel=1e-4)
    for tensor, same in zip(gradients, other_gradients, strict=True):
        torch.testing.assert_close(tensor, same, rtol=1e-4, atol=tolerance)


@pytest.mark.parametrize("changes", [{"threads": 2}, {"accumulate": 3}, {"threads": 2, "accumulate": 2}])
@pytest.mark.parametrize("examples", [1, 2, 33])
def test_parts_add_up_to_the_whole(corpus, changes, examples):
    rows = corpus.training[:examples]
    check_equal(sums_and_gradients(corpus, rows), sums_and_gradients(corpus, rows, **changes))


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("examples", [1, 2, 33])
def test_ranks_share_a_minibatch_and_have_its_gradient(corpus, size, examples):
    rows = corpus.training[:examples]
    shared = in_ranks(size, lambda ranks: sums_and_gradients(corpus, rows, ranks, accumulate=2, threads=2))
    alone = sums_and_gradients(corpus, rows)
    for of_rank in shared:
        check_equal(of_rank, alone)
        assert of_rank[0] == shared[0][0]
        assert of_rank[0].seconds == 100.0  # by the first one's clock
        for tensor, same in zip(of_rank[1], shared[0][1], strict=True):
            assert torch.equal(tensor, same)


def test_dropout_depends_on_the_number_of_parts_and_not_on_who_computes_them(corpus):
    rows, dropout = corpus.training[:40], {"dropout": 0.5}
    ways = [
        *in_ranks(2, lambda ranks: sums_and_gradients(corpus, rows, ranks, threads=2, **dropout)),
        *in_ranks(2, lambda ranks: sums_and_gradients(corpus, rows, ranks, accumulate=4, **dropout)),
        *in_ranks(4, lambda ranks: sums_and_gradients(corpus, rows, ranks, **dropout)),
        sums_and_gradients(corpus, rows, accumulate=4, **dropout),
        sums_and_gradients(corpus, rows, threads=4, **dropout),
    ]
    for way in ways[1:]:
        check_equal(way, ways[0])
    other = sums_and_gradients(corpus, rows, **dropout)
    assert abs(other[0].nats - ways[0][0].nats) > 1e-3
