"""An RNN Encoder-Decoder of other cells once more, number by number; see `reference` for the rest of the network.

Shares no code with the package: no tensors, no batches. Tensors come as nested lists by the names of the checkpoint
format. Both lists of ids end with the end symbol.
"""

from math import log, tanh

from tests.models import reference
from tests.models.reference import add, product, sigma, softmax, word_scores


def side_of(weights, side):
    return {name.removeprefix(f"{side}."): value for name, value in weights.items() if name.startswith(f"{side}.")}


def inside(w, ending, e, h, c):
    """What is summed inside a bracket, of which C c is the decoder's alone."""
    context = [product(w[f"C{ending}"], c)] if c is not None else []
    return add(product(w[f"W{ending}"], e), product(w[f"U{ending}"], h), *context, w[f"b{ending}"])


def plain_step(w, e, state, c, cell):
    h, _ = state
    x = inside(w, "", e, h, c)
    if cell == "relu":
        return [max(0.0, value) for value in x], None
    new = [tanh(value) for value in x]
    if cell == "leaky":
        new = [a * old + (1 - a) * young for a, old, young in zip(w["alpha"], h, new, strict=True)]
    return new, None


def lstm_step(w, e, state, c, cell):
    h, m = state
    size = len(h)

    def bracket(gate, memory):
        x = inside(w, f"_{gate}", e, h, c)
        if cell == "lstm" or gate == "m":
            return x
        return [x[k] + w[f"p_{gate}"][k] * memory[k] for k in range(size)]

    i, f = ([sigma(x) for x in bracket(gate, m)] for gate in "if")
    candidate = [tanh(x) for x in bracket("m", m)]
    memory = [f[k] * m[k] + i[k] * candidate[k] for k in range(size)]
    o = [sigma(x) for x in bracket("o", memory)]
    return [o[k] * tanh(memory[k]) for k in range(size)], memory


def gated_step(w, e, state, c, switches):
    """GRU; only the encoder's, the decoder's is `reference.decoder_step`."""
    h, _ = state
    size = len(h)
    z, r = ([sigma(x) for x in inside(w, ending, e, h, c)] for ending in ("_z", "_r"))
    if switches["encoder_reset"] == "after":
        Uh = product(w["U"], h)
        candidate = add(product(w["W"], e), [r[k] * Uh[k] for k in range(size)], w["b"])
    else:
        candidate = add(product(w["W"], e), product(w["U"], [r[k] * h[k] for k in range(size)]), w["b"])
    return [z[k] * h[k] + (1 - z[k]) * tanh(candidate[k]) for k in range(size)], None


def step(w, e, state, c, switches):
    if switches["cell"] == "gru":
        if c is None:
            return gated_step(w, e, state, c, switches)
        return reference.decoder_step(w, state[0], e, c, len(state[0]), switches), None
    take = lstm_step if switches["cell"].startswith("lstm") else plain_step
    return take(w, e, state, c, switches["cell"])


def summary(weights, source_ids, switches):
    w = side_of(weights, "encoder")
    size = len(weights["decoder.b_V"])
    state = [0.0] * size, [0.0] * size
    for word in source_ids:
        state = step(w, w["embedding"][word], state, None, switches)
    if switches["summary"] == "last":
        return state[0]
    return [tanh(x) for x in add(product(w["V"], state[0]), w["b_V"])]


def distributions(weights, source_ids, target_ids, switches):
    """For each target word (the end symbol is the last) the whole distribution, as probabilities."""
    c, w = summary(weights, source_ids, switches), side_of(weights, "decoder")
    state = [tanh(x) for x in add(product(w["V"], c), w["b_V"])], [0.0] * len(w["b_V"])
    e, everything = [0.0] * len(w["embedding"][0]), []
    for t in range(len(target_ids)):
        if t > 0:
            e = w["embedding"][target_ids[t - 1]]
        if t > 0 or switches["first_step"] == "zero-embedding":
            state = step(w, e, state, c, switches)
        everything.append(softmax(word_scores(w, state[0], e, c)))
    return everything


def log_prob(weights, source_ids, target_ids, switches):
    """log p of a pair."""
    words = distributions(weights, source_ids, target_ids, switches)
    return sum(log(p[word]) for p, word in zip(words, target_ids, strict=True))
