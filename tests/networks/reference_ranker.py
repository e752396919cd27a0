"""The ranker once more, number by number. Tensors are nested lists by their names."""

from math import tanh


def score(weights, source_ids, target_ids, slots):
    """Both lists without end symbols."""
    u = [*side(weights["source.embedding"], source_ids, slots), *side(weights["target.embedding"], target_ids, slots)]
    s = weights["b_2"][0]
    for row, bias, w in zip(weights["W_1"], weights["b_1"], weights["w"], strict=True):
        s += w * tanh(sum(a * b for a, b in zip(row, u, strict=True)) + bias)
    return s


def side(embedding, ids, slots):
    """The embeddings end to end; that of ``<null>`` is the last one, for the slots without a word."""
    null = len(embedding) - 1
    return [value for k in range(slots) for value in embedding[ids[k] if k < len(ids) else null]]


def loss(weights, source_ids, target_ids, corrupted_ids, slots):
    """The hinge of one pair and one corruption of it."""
    right, wrong = (score(weights, source_ids, ids, slots) for ids in (target_ids, corrupted_ids))
    return max(0.0, 1 - right + wrong)
