"""The network once more, number by number: the equations of Cho et al. (2014), appendix A, as loops over scalars.

Shares no code with the package: no tensors, no batches, no sharing. Tensors come as nested lists by the names of the
checkpoint format.
"""

from math import exp, log, tanh


def sigma(x):
    return 1 / (1 + exp(-x)) if x >= 0 else exp(x) / (1 + exp(x))


def product(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def add(*vectors):
    return [sum(values) for values in zip(*vectors, strict=True)]


def side_of(weights, side):
    """The tensors of a side, without its name."""
    return {name.removeprefix(f"{side}."): value for name, value in weights.items() if name.startswith(f"{side}.")}


def gates(w, e, h, c=None):
    """z and r, of which the decoder's see c too."""
    for gate in ("_z", "_r"):
        context = [] if c is None else [product(w[f"C{gate}"], c)]
        yield [sigma(x) for x in add(product(w[f"W{gate}"], e), product(w[f"U{gate}"], h), *context, w[f"b{gate}"])]


def encoder_steps(weights, source_ids):
    """z, r and the state after each word."""
    w = side_of(weights, "encoder")
    size = len(w["b"])
    h = [0.0] * size
    for word in source_ids:
        e = w["embedding"][word]
        z, r = gates(w, e, h)
        gated = [r[j] * h[j] for j in range(size)]
        new = [tanh(x) for x in add(product(w["W"], e), product(w["U"], gated), w["b"])]
        h = [z[j] * h[j] + (1 - z[j]) * new[j] for j in range(size)]
        yield z, r, h


def summary(weights, source_ids, switches):
    """The summary c of a source phrase (its ids end with the end symbol)."""
    *_, (_, _, h) = encoder_steps(weights, source_ids)
    if switches["summary"] == "last":
        return h
    w = side_of(weights, "encoder")
    return [tanh(x) for x in add(product(w["V"], h), w["b_V"])]


def distributions(weights, source_ids, target_ids, switches):
    """For each target word (the end symbol is the last) the whole distribution, as probabilities."""
    w = side_of(weights, "decoder")
    c = summary(weights, source_ids, switches)
    size = len(w["b"])
    h = [tanh(x) for x in add(product(w["V"], c), w["b_V"])]
    e = [0.0] * len(w["embedding"][0])
    everything = []
    for t in range(len(target_ids)):
        if t > 0:
            e = w["embedding"][target_ids[t - 1]]
        if t > 0 or switches["first_step"] == "zero-embedding":
            h = decoder_step(w, h, e, c, size, switches)
        everything.append(softmax(word_scores(w, h, e, c)))
    return everything


def decoder_step(w, h, e, c, size, switches):
    z, r = gates(w, e, h, c)
    Cc = product(w["C"], c)
    We = product(w["W"], e)
    if switches["decoder_reset"] == "after":
        Uh = product(w["U"], h)
        new = [tanh(We[j] + r[j] * (Uh[j] + Cc[j]) + w["b"][j]) for j in range(size)]
    else:
        U_rh = product(w["U"], [r[j] * h[j] for j in range(size)])
        new = [tanh(We[j] + U_rh[j] + Cc[j] + w["b"][j]) for j in range(size)]
    return [z[j] * h[j] + (1 - z[j]) * new[j] for j in range(size)]


def word_scores(w, h, e, c):
    s = add(product(w["O_h"], h), product(w["O_y"], e), product(w["O_c"], c), w["b_O"])
    maxout = [max(s[2 * i], s[2 * i + 1]) for i in range(len(s) // 2)]
    return add(product(w["G_l"], product(w["G_r"], maxout)), w["b_G"])


def softmax(scores):
    highest = max(scores)
    exponentials = [exp(score - highest) for score in scores]
    total = sum(exponentials)
    return [value / total for value in exponentials]


def log_prob(weights, source_ids, target_ids, switches):
    """log p(f|e) of a pair; both phrases end with the end symbol."""
    words = distributions(weights, source_ids, target_ids, switches)
    return sum(log(p[word]) for p, word in zip(words, target_ids, strict=True))


def n_gram_log_prob(weights, context, word):
    """log p(word | context) of a CSLM; the ids of the context are oldest first."""
    h = [x for i in context for x in weights["embedding"][i]]
    for W, b in (("W_1", "b_1"), ("W_2", "b_2")):
        h = [max(0.0, x) for x in add(product(weights[W], h), weights[b])]
    return log(softmax(add(product(weights["G"], h), weights["b_G"]))[word])
