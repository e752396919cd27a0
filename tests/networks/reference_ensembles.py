"""Ensembles once more, number by number: what the distributions of several networks at one position make together."""

from math import exp, log

from tests.networks.reference import add


def combine(distributions, kind, weights=None):
    """log p(y) for each word y, from each member's probabilities; only arithmetic ensembles may have weights.

    `mean-log` is no distribution: its exponentials sum to 1 only where all members agree, and to less elsewhere.
    """
    if kind == "arithmetic":
        return arithmetic(distributions, weights)
    assert kind in {"geometric", "mean-log"}
    assert weights is None
    means = mean_log(distributions)
    return means if kind == "mean-log" else normalised(means)


def arithmetic(distributions, weights):
    if weights is None:
        weights = [1 / len(distributions)] * len(distributions)
    weighted = [[weight * p for p in member] for weight, member in zip(weights, distributions, strict=True)]
    return [log(p) for p in add(*weighted)]


def mean_log(distributions):
    return [total / len(distributions) for total in add(*([log(p) for p in member] for member in distributions))]


def normalised(scores):
    highest = max(scores)
    norm = highest + log(sum(exp(score - highest) for score in scores))
    return [score - norm for score in scores]
