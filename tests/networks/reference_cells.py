"""An RNN Encoder-Decoder of other cells once more, number by number; see `reference` for the rest of the network.

Shares no code with the package: no tensors, no batches. Tensors come as nested lists by the names of the checkpoint
format. Both lists of ids end with the end symbol.
"""

from math import log, tanh

from tests.networks import reference
from tests.networks.reference import add, product, side_of, softmax, word_scores
from tests.networks.reference_seq2seq import lstm_step


def inside(w, e, h, c):
    """What is summed inside a bracket, of which C c is the decoder's alone."""
    context = [product(w["C"], c)] if c is not None else []
    return add(product(w["W"], e), product(w["U"], h), *context, w["b"])


def plain_step(w, e, state, c, cell):
    h, _ = state
    x = inside(w, e, h, c)
    if cell == "relu":
        return [max(0.0, value) for value in x], None
    new = [tanh(value) for value in x]
    if cell == "leaky":
        new = [a * old + (1 - a) * young for a, old, young in zip(w["alpha"], h, new, strict=True)]
    return new, None


def step(w, e, state, c, switches):
    if switches["cell"] == "gru":
        reset = switches["encoder_reset" if c is None else "decoder_reset"]
        return reference.gated_step(w, e, state[0], c, reset), None
    if switches["cell"].startswith("lstm"):
        return lstm_step(w, e, *state, switches["cell"] == "lstm-peephole", c)
    return plain_step(w, e, state, c, switches["cell"])


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
