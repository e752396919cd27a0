"""The Transformer once more, number by number: Vaswani et al. (2017), section 3, over scalars, with norms before sublayers.

Shares no code with the package: no tensors, no batches. Tensors come as nested lists by the names of the checkpoint
format. Both lists of ids end with the end symbol.
"""

import math

from tests.networks.reference import add, product, side_of, softmax

END = 1


def norm(w, x):
    mean = sum(x) / len(x)
    variance = sum((number - mean) ** 2 for number in x) / len(x)
    return [
        g * (number - mean) / math.sqrt(variance + 1e-5) + b for g, number, b in zip(w["g"], x, w["b"], strict=True)
    ]


def position_code(position, d):
    codes = []
    for k in range(d):
        angle = position / 10000 ** ((k - k % 2) / d)
        codes.append(math.cos(angle) if k % 2 else math.sin(angle))
    return codes


def inputs(weights, embedding, ids):
    d, scale = len(weights[embedding][0]), weights.get("input_scale", 1.0)
    words = [[math.sqrt(d) * number for number in weights[embedding][word]] for word in ids]
    return [[scale * number for number in add(word, position_code(i, d))] for i, word in enumerate(words)]


def attention(w, x, memories, heads, last=None):
    """What position i adds, which reads memories 0 … last(i)."""
    d_k = len(x[0]) // heads
    keys, values = [product(w["W_K"], m) for m in memories], [product(w["W_V"], m) for m in memories]
    added = []
    for i, state in enumerate(x):
        query, sums = product(w["W_Q"], norm(side_of(w, "norm"), state)), []
        seen = len(memories) if last is None else i + 1
        for head in range(heads):
            part = slice(head * d_k, (head + 1) * d_k)
            energies = [sum(map(float.__mul__, query[part], key[part])) / math.sqrt(d_k) for key in keys[:seen]]
            alphas = softmax(energies)
            sums += [
                sum(a * value[head * d_k + k] for a, value in zip(alphas, values[:seen], strict=True))
                for k in range(d_k)
            ]
        added.append(product(w["W_O"], sums))
    return added


def feed_forward(w, x):
    hidden = [max(0.0, number) for number in add(product(w["W_1"], norm(side_of(w, "norm"), x)), w["b_1"])]
    return add(product(w["W_2"], hidden), w["b_2"])


def encoded(weights, ids, config):
    h = inputs(weights, "decoder.embedding" if config["shared"] else "encoder.embedding", ids)
    for layer in range(config["layers"]):
        w = side_of(weights, f"encoder.layers.{layer}.attention")
        read = [norm(side_of(w, "norm"), state) for state in h]
        h = [add(*both) for both in zip(h, attention(w, h, read, config["heads"]), strict=True)]
        w = side_of(weights, f"encoder.layers.{layer}.feed_forward")
        h = [add(state, feed_forward(w, state)) for state in h]
    return [norm(side_of(weights, "encoder.norm"), state) for state in h]


def distributions(weights, source_ids, target_ids, config):
    """For each target word (the end symbol is the last) the whole distribution, as probabilities."""
    h, heads = encoded(weights, source_ids, config), config["heads"]
    s = inputs(weights, "decoder.embedding", [END, *target_ids[:-1]])
    for layer in range(config["layers"]):
        w = side_of(weights, f"decoder.layers.{layer}.attention")
        read = [norm(side_of(w, "norm"), state) for state in s]
        s = [add(*both) for both in zip(s, attention(w, s, read, heads, last=True), strict=True)]
        w = side_of(weights, f"decoder.layers.{layer}.look")
        s = [add(*both) for both in zip(s, attention(w, s, h, heads), strict=True)]
        w = side_of(weights, f"decoder.layers.{layer}.feed_forward")
        s = [add(state, feed_forward(w, state)) for state in s]
    last = [norm(side_of(weights, "decoder.norm"), state) for state in s]
    return [softmax(add(product(weights["decoder.embedding"], r), weights["decoder.b_G"])) for r in last]
