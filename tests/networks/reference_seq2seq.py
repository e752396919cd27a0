"""Sequence to sequence once more, number by number: Sutskever et al. (2014), sections 2 and 3, over scalars.

Its layer is the LSTM of Graves (2013), equations 7 to 11. Shares no code with the package: no tensors, no batches.
Tensors come as nested lists by the names of the checkpoint format. Both lists of ids end with the end symbol.
"""

from tests.networks.reference import add, lstm_step, product, side_of, softmax

END = 1


def stack_step(layers, a, state, peepholes):
    """The new (h, m) of each layer; a layer reads the new h of the layer below it."""
    new = []
    for w, (h, m) in zip(layers, state, strict=True):
        new.append(lstm_step(w, a, h, m, peepholes))
        a, _ = new[-1]
    return new


def in_order(source_ids, source_order):
    """The words of a source as they are read: the end symbol is the last either way."""
    assert source_order in {"reversed", "forward"}
    *words, end = source_ids
    return [*reversed(words), end] if source_order == "reversed" else [*words, end]


def encoded(weights, source_ids, switches):
    """The last (h, m) of each layer of the encoder."""
    layers = [side_of(weights, f"encoder.layer{number + 1}") for number in range(switches["layers"])]
    state = [([0.0] * len(w["b_m"]), [0.0] * len(w["b_m"])) for w in layers]
    for word in in_order(source_ids, switches["source_order"]):
        state = stack_step(layers, weights["encoder.embedding"][word], state, switches["peepholes"])
    return state


def distributions(weights, source_ids, target_ids, switches):
    """For each target word (the end symbol is the last) the whole distribution, as probabilities."""
    layers = [side_of(weights, f"decoder.layer{number + 1}") for number in range(switches["layers"])]
    state = encoded(weights, source_ids, switches)
    everything = []
    for word in [END, *target_ids[:-1]]:
        state = stack_step(layers, weights["decoder.embedding"][word], state, switches["peepholes"])
        highest_h, _ = state[-1]
        everything.append(softmax(add(product(weights["decoder.G"], highest_h), weights["decoder.b_G"])))
    return everything
