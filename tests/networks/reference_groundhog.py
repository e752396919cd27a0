"""The authors' released code (GroundHog, experiments/nmt) number by number, with its own names, ids and conventions.

A matrix maps a row vector, embeddings have a bias, the update gate takes the new state. Written from descriptions of
that code and not from this package; tensors come as nested lists by the names that it saves them by.
"""

from math import log, tanh

from tests.networks.reference import add, sigma, softmax


def through(vector, matrix):
    """A row vector times a matrix."""
    return [sum(x * row[j] for x, row in zip(vector, matrix, strict=True)) for j in range(len(matrix[0]))]


def embedded(w, side, word):
    return add(w[f"W_0_{side}_approx_embdr"][word], w[f"b_0_{side}_approx_embdr"])


def step(w, part, e, h, context=None):
    """RecurrentLayer with gating: update takes the new state, reset acts before the product."""

    def signal(name, of_context, bias):
        parts = [through(e, w[f"W_0_{part}_{name}_embdr_0"])]
        if context is not None:
            parts.append(through(context, w[f"W_0_dec_dec_{of_context}_0"]))
        return add(*parts, w[bias]) if bias else add(*parts)

    update = signal("update", "updater", None)
    reset = signal("reset", "reseter", None)
    below = signal("input", "inputter", f"b_0_{part}_input_embdr_0")
    u = [sigma(x) for x in add(update, through(h, w[f"G_{part}_transition_0"]))]
    r = [sigma(x) for x in add(reset, through(h, w[f"R_{part}_transition_0"]))]
    reset_h = [a * b for a, b in zip(r, h, strict=True)]
    new = [tanh(x) for x in add(below, through(reset_h, w[f"W_{part}_transition_0"]))]
    return [u[k] * new[k] + (1 - u[k]) * h[k] for k in range(len(h))]


def states(w, part, source):
    h, every = [0.0] * len(w[f"W_{part}_transition_0"]), []
    for word in source:
        h = step(w, part, embedded(w, "enc", word), h)
        every.append(h)
    return every


def started(w, vector):
    return [tanh(x) for x in add(through(vector, w["W_0_dec_initializer_0"]), w["b_0_dec_initializer_0"])]


def predicted(w, h, context, previous):
    """The distribution of a word; `previous` is None where there is no word before it."""
    parts = [
        add(through(h, w["W_0_dec_hid_readout_0"]), w["b_0_dec_hid_readout_0"]),
        through(context, w["W_0_dec_repr_readout"]),
    ]
    if previous is not None:
        parts.append(through(embedded(w, "dec", previous), w["W_0_dec_prev_readout_0"]))
    readout = add(*parts)
    maxout = [max(readout[2 * k], readout[2 * k + 1]) for k in range(len(readout) // 2)]
    return softmax(
        add(through(through(maxout, w["W1_dec_deep_softmax"]), w["W2_dec_deep_softmax"]), w["b_dec_deep_softmax"])
    )


def phrase_log_prob(w, source, target):
    """Of ids with their end symbols: predict from a state, then let it take the word."""
    c = states(w, "enc", source)[-1]
    h, previous, total = started(w, c), None, 0.0
    for word in target:
        total += log(predicted(w, h, c, previous)[word])
        h, previous = step(w, "dec", embedded(w, "dec", word), h, c), word
    return total


def search_log_prob(w, source, target):
    """The same of RNNsearch: the state looks, then the word is predicted, then the state takes both."""
    forward = states(w, "enc", source)
    backward = states(w, "back_enc", source[::-1])[::-1]
    annotations = [a + b for a, b in zip(forward, backward, strict=True)]
    h, previous, total = started(w, backward[0]), None, 0.0
    for word in target:
        context = looked(w, annotations, h)
        total += log(predicted(w, h, context, previous)[word])
        h, previous = step(w, "dec", embedded(w, "dec", word), h, context), word
    return total


def looked(w, annotations, h):
    energies = []
    for annotation in annotations:
        inside = add(through(annotation, w["A_dec_transition_0"]), through(h, w["B_dec_transition_0"]))
        energies.append(sum(tanh(x) * d[0] for x, d in zip(inside, w["D_dec_transition_0"], strict=True)))
    shares = softmax(energies)
    return [sum(a * h[k] for a, h in zip(shares, annotations, strict=True)) for k in range(len(annotations[0]))]
