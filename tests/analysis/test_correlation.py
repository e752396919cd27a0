"""Correlations against their definitions; samples whose rows are all as likely."""

import math
import random

import numpy as np
import pytest

from moses_rnn.analysis.agreement import pearson, ranks, spearman


def slow_pearson(x, y):
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    both = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return both / math.sqrt(sum((a - mean_x) ** 2 for a in x) * sum((b - mean_y) ** 2 for b in y))


def slow_ranks(x):
    """1 + how many are below, and half of the others that are equal."""
    return [1 + sum(b < a for b in x) + (sum(b == a for b in x) - 1) / 2 for a in x]


DRAWN = random.Random(1)
CASES = [
    ([1, 2, 3], [1, 2, 4]),
    ([1, 2, 2, 3], [3, 2, 2, 1]),
    ([0, 0, 0, 1], [5, 5, 7, 7]),
    ([-1e-9, 0, 1e-9], [1e9, 2e9, 4e9]),
    ([DRAWN.choice([0, 1, 2]) for _ in range(50)], [DRAWN.random() for _ in range(50)]),
]


@pytest.mark.parametrize(("x", "y"), CASES)
def test_correlations_are_those_of_their_definitions(x, y):
    a, b = np.array(x, float), np.array(y, float)
    assert ranks(a).tolist() == slow_ranks(x)
    assert pearson(a, b) == pytest.approx(slow_pearson(x, y))
    assert spearman(a, b) == pytest.approx(slow_pearson(slow_ranks(x), slow_ranks(y)))
