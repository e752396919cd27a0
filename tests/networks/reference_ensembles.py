"""Ensembles once more, number by number: what the distributions of several networks at one position make together."""

from math import exp, log

from tests.networks.reference import add


def combine(distributions, kind):
    """log p(y) for each word y, from each member's probabilities.

    `mean-log` is no distribution: its exponentials sum to 1 only where all members agree, and to less elsewhere.
    """
    count = len(distributions)
    if kind == "arithmetic":
        return [log(total / count) for total in add(*distributions)]
    means = [total / count for total in add(*([log(p) for p in member] for member in distributions))]
    norm = log(sum(map(exp, means))) if kind == "geometric" else 0.0
    return [mean - norm for mean in means]
