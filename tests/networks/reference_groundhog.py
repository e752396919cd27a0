"""The authors' released code (GroundHog, experiments/nmt) with its own names, ids and conventions, and random weights.

A row vector is multiplied by a matrix, embeddings have a bias, the update gate takes the new state. Written from
descriptions of that code and not from this package; tensors come as arrays by the names that it saves them by.
"""

import numpy as np

S, K, E, H, M, R, A = 9, 8, 3, 5, 4, 6, 7
SOURCE_LINES = [b"eol", b"UNK", *(b"s%d" % row for row in range(2, S - 1))]  # the last row has no word
TARGET_LINES = [b"eol", b"UNK", *(b"t%d" % row for row in range(2, K - 1))]


def shapes(network):
    parts, context = (["enc", "dec"], H) if network == "phrases" else (["enc", "back_enc", "dec"], 2 * H)
    for side, words in (("enc", S), ("dec", K)):
        yield from ((f"W_0_{side}_approx_embdr", (words, E)), (f"b_0_{side}_approx_embdr", (E,)))
    for part in parts:
        yield from ((f"W_0_{part}_{signal}_embdr_0", (E, H)) for signal in ("input", "update", "reset"))
        yield f"b_0_{part}_input_embdr_0", (H,)
        yield from ((f"{letter}_{part}_transition_0", (H, H)) for letter in "WGR")
    yield from (("W_0_dec_initializer_0", (H, H)), ("b_0_dec_initializer_0", (H,)))
    yield from ((f"W_0_dec_dec_{signal}_0", (context, H)) for signal in ("inputter", "updater", "reseter"))
    yield from (("W_0_dec_hid_readout_0", (H, 2 * M)), ("b_0_dec_hid_readout_0", (2 * M,)))
    yield from (("W_0_dec_prev_readout_0", (E, 2 * M)), ("W_0_dec_repr_readout", (context, 2 * M)))
    yield from (("W1_dec_deep_softmax", (M, R)), ("W2_dec_deep_softmax", (R, K)), ("b_dec_deep_softmax", (K,)))
    if network == "search":
        yield from (("A_dec_transition_0", (2 * H, A)), ("B_dec_transition_0", (H, A)), ("D_dec_transition_0", (A, 1)))


def weights(network):
    random = np.random.default_rng(4)
    return {name: random.normal(0, 0.6, shape).astype(np.float32) for name, shape in shapes(network)}


def sigma(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    return np.exp(x) / np.exp(x).sum()


def embedded(w, side, word):
    return w[f"W_0_{side}_approx_embdr"][word] + w[f"b_0_{side}_approx_embdr"]


def step(w, part, e, h, context=None):
    """RecurrentLayer with gating: update takes the new state, reset acts before the product."""
    below, update, reset = (e @ w[f"W_0_{part}_{signal}_embdr_0"] for signal in ("input", "update", "reset"))
    if context is not None:
        below, update, reset = (
            x + context @ w[f"W_0_dec_dec_{signal}_0"]
            for x, signal in ((below, "inputter"), (update, "updater"), (reset, "reseter"))
        )
    u = sigma(update + h @ w[f"G_{part}_transition_0"])
    r = sigma(reset + h @ w[f"R_{part}_transition_0"])
    new = np.tanh(below + w[f"b_0_{part}_input_embdr_0"] + (r * h) @ w[f"W_{part}_transition_0"])
    return u * new + (1 - u) * h


def states(w, part, source):
    h, every = np.zeros(H), []
    for word in source:
        h = step(w, part, embedded(w, "enc", word), h)
        every.append(h)
    return every


def predicted(w, h, context, previous):
    """The distribution of a word; `previous` is None where there is no word before it."""
    readout = h @ w["W_0_dec_hid_readout_0"] + w["b_0_dec_hid_readout_0"] + context @ w["W_0_dec_repr_readout"]
    if previous is not None:
        readout = readout + embedded(w, "dec", previous) @ w["W_0_dec_prev_readout_0"]
    maxout = np.maximum(readout[::2], readout[1::2])
    return softmax(maxout @ w["W1_dec_deep_softmax"] @ w["W2_dec_deep_softmax"] + w["b_dec_deep_softmax"])


def log_prob(w, source, target):
    """Of ids with their end symbols: predict from a state, then let it take the word; RNNsearch looks before that."""
    forward, annotations = states(w, "enc", source), None
    first = context = forward[-1]
    if "A_dec_transition_0" in w:
        backward = states(w, "back_enc", source[::-1])[::-1]
        first, annotations = backward[0], np.concatenate([forward, backward], axis=1)
    h = np.tanh(first @ w["W_0_dec_initializer_0"] + w["b_0_dec_initializer_0"])
    previous, total = None, 0.0
    for word in target:
        if annotations is not None:
            inside = annotations @ w["A_dec_transition_0"] + h @ w["B_dec_transition_0"]
            context = softmax((np.tanh(inside) @ w["D_dec_transition_0"])[:, 0]) @ annotations
        total += np.log(predicted(w, h, context, previous)[word])
        h, previous = step(w, "dec", embedded(w, "dec", word), h, context), word
    return total
