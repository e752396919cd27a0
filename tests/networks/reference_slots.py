"""Networks of slots once more, number by number: the ranker, and the continuous-space translation model (CSTM).

Tensors are nested lists by their names. No list of ids has an end symbol.
"""

from math import log, tanh

from tests.networks.reference import add, product, softmax


def side(embedding, ids, slots):
    """The embeddings end to end; that of ``<null>`` is the last one, for the slots without a word."""
    null = len(embedding) - 1
    return [value for k in range(slots) for value in embedding[ids[k] if k < len(ids) else null]]


def cstm_log_prob(weights, source_ids, target_ids, slots):
    """Of the target's end symbol, word 1, too, if it has a slot."""
    h = side(weights["embedding"], source_ids, slots)
    for W, b in (("W_1", "b_1"), ("W_2", "b_2")):
        h = [tanh(value) for value in add(product(weights[W], h), weights[b])]
    total = 0.0
    for k, word in enumerate([*target_ids, 1][:slots], 1):
        total += log(softmax(add(product(weights[f"G_{k}"], h), weights[f"b_G{k}"]))[word])
    return total


def ranker_score(weights, source_ids, target_ids, slots):
    u = [*side(weights["source.embedding"], source_ids, slots), *side(weights["target.embedding"], target_ids, slots)]
    h = [tanh(value) for value in add(product(weights["W_1"], u), weights["b_1"])]
    return weights["b_2"][0] + sum(a * b for a, b in zip(weights["w"], h, strict=True))


def ranker_loss(weights, source_ids, target_ids, corrupted_ids, slots):
    """The hinge of one pair and one corruption of it."""
    right, wrong = (ranker_score(weights, source_ids, ids, slots) for ids in (target_ids, corrupted_ids))
    return max(0.0, 1 - right + wrong)
