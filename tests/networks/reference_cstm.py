"""The continuous-space translation model once more, number by number. Tensors are nested lists by their names."""

from math import log, tanh

from tests.networks.reference import add, product, softmax


def log_prob(weights, source_ids, target_ids, slots):
    """Both lists without end symbols, which the source's slots do not hold either; of the target's it is word 1."""
    null = len(weights["embedding"]) - 1
    read = [*source_ids, *[null] * (slots - len(source_ids))]
    x = [value for word in read for value in weights["embedding"][word]]
    h_1 = [tanh(value) for value in add(product(weights["W_1"], x), weights["b_1"])]
    h_2 = [tanh(value) for value in add(product(weights["W_2"], h_1), weights["b_2"])]
    total = 0.0
    for k, word in enumerate([*target_ids, 1][:slots], 1):
        total += log(softmax(add(product(weights[f"G_{k}"], h_2), weights[f"b_G{k}"]))[word])
    return total
