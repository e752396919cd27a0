"""Feed-forward language models once more, number by number: the CSLM, and Bengio et al. (2003), section 2.

Shares no code with the package: no tensors, no batches. Tensors come as nested lists by the names of the checkpoint
format; what a network does not have is not among them.
"""

from math import log, tanh

from tests.networks.reference import add, product, softmax


def cslm(weights, x):
    for W, b in (("W_1", "b_1"), ("W_2", "b_2")):
        x = [max(0.0, a) for a in add(product(weights[W], x), weights[b])]
    return add(product(weights["G"], x), weights["b_G"])


def bengio(weights, x):
    y = weights["b_G"]
    if "W" in weights:
        y = add(y, product(weights["W"], x))
    if "G" in weights:
        y = add(y, product(weights["G"], [tanh(a) for a in add(weights["b_1"], product(weights["W_1"], x))]))
    return y


def sentence_log_prob(network, weights, ids, order):
    """log p of a sentence, whose ids end with the end symbol; `<s>` is the last row of the embedding."""
    begin, total = len(weights["embedding"]) - 1, 0.0
    padded = [begin] * (order - 1) + ids
    for i, word in enumerate(ids):
        x = [number for j in padded[i : i + order - 1] for number in weights["embedding"][j]]
        total += log(softmax(network(weights, x))[word])
    return total
