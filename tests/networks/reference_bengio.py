"""Bengio's network once more, number by number: Bengio et al. (2003), section 2, as loops over scalars.

Shares no code with the package: no tensors, no batches. Tensors come as nested lists by the names of the checkpoint
format; what a network does not have is not among them.
"""

from math import log, tanh

from tests.networks.reference import add, product, softmax


def distribution(weights, context):
    """The probabilities of all words after a context, whose ids come oldest first."""
    x = [number for word in context for number in weights["embedding"][word]]
    y = weights["b_G"]
    if "W" in weights:
        y = add(y, product(weights["W"], x))
    if "G" in weights:
        hidden = [tanh(a) for a in add(weights["b_1"], product(weights["W_1"], x))]
        y = add(y, product(weights["G"], hidden))
    return softmax(y)


def log_prob(weights, context, word):
    """log p(word | context)."""
    return log(distribution(weights, context)[word])


def sentence_log_prob(weights, ids, order):
    """log p of a sentence, whose ids end with the end symbol; `<s>` is the last row of the embedding."""
    begin = len(weights["embedding"]) - 1
    padded = [begin] * (order - 1) + ids
    return sum(log_prob(weights, padded[i : i + order - 1], word) for i, word in enumerate(ids))
