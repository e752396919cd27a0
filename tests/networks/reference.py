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


def gated_step(w, e, h, c=None, reset="before"):
    """The new state; the reset gate acts on h before the product with U, or after it on U h + C c."""
    z, r = gates(w, e, h, c)
    size = len(h)
    Cc = [0.0] * size if c is None else product(w["C"], c)
    if reset == "after":
        Uh_Cc = add(product(w["U"], h), Cc)
        inside = add(product(w["W"], e), [r[j] * Uh_Cc[j] for j in range(size)], w["b"])
    else:
        inside = add(product(w["W"], e), product(w["U"], [r[j] * h[j] for j in range(size)]), Cc, w["b"])
    return [z[j] * h[j] + (1 - z[j]) * tanh(inside[j]) for j in range(size)]


def encoder_steps(w, embedded):
    """z, r and the state after each vector."""
    h = [0.0] * len(w["b"])
    for e in embedded:
        z, r = gates(w, e, h)
        h = gated_step(w, e, h)
        yield z, r, h


def summary(weights, source_ids, switches):
    """The summary c of a source phrase (its ids end with the end symbol)."""
    w = side_of(weights, "encoder")
    *_, (_, _, h) = encoder_steps(w, [w["embedding"][word] for word in source_ids])
    if switches["summary"] == "last":
        return h
    return [tanh(x) for x in add(product(w["V"], h), w["b_V"])]


def distributions(weights, source_ids, target_ids, switches):
    """For each target word (the end symbol is the last) the whole distribution, as probabilities."""
    w = side_of(weights, "decoder")
    c = summary(weights, source_ids, switches)
    h = [tanh(x) for x in add(product(w["V"], c), w["b_V"])]
    e = [0.0] * len(w["embedding"][0])
    everything = []
    for t in range(len(target_ids)):
        if t > 0:
            e = w["embedding"][target_ids[t - 1]]
        if t > 0 or switches["first_step"] == "zero-embedding":
            h = gated_step(w, e, h, c, switches["decoder_reset"])
        everything.append(softmax(word_scores(w, h, e, c)))
    return everything


def word_scores(w, h, e, c):
    s = add(product(w["O_h"], h), product(w["O_y"], e), product(w["O_c"], c), w["b_O"])
    maxout = [max(s[2 * i], s[2 * i + 1]) for i in range(len(s) // 2)]
    scores = product(w["G"], maxout) if "G" in w else product(w["G_l"], product(w["G_r"], maxout))
    return add(scores, w["b_G"])


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
