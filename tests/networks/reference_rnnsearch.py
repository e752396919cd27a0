"""RNNsearch once more, number by number: the equations of Bahdanau et al. (2015), section 3 and appendix A, over scalars.

Shares no code with the package: no tensors, no batches, no masks. Tensors come as nested lists by the names of the
checkpoint format. The update gate z keeps the old state; the paper's keeps the new one. Both lists of ids end with the
end symbol.
"""

from math import log, tanh

from tests.networks.reference import add, product, sigma, softmax


def part(weights, prefix):
    return {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}


def gated_step(w, e, state, context=None):
    """A GRU's new state, reset before the product; the context, if there is one, enters both gates and the candidate."""
    size = len(w["b"])
    drive = {gate: add(product(w[f"W{gate}"], e), w[f"b{gate}"]) for gate in ("", "_z", "_r")}
    if context is not None:
        drive = {gate: add(drive[gate], product(w[f"C{gate}"], context)) for gate in drive}
    z = [sigma(x) for x in add(drive["_z"], product(w["U_z"], state))]
    r = [sigma(x) for x in add(drive["_r"], product(w["U_r"], state))]
    kept = [r[k] * state[k] for k in range(size)]
    new = [tanh(x) for x in add(drive[""], product(w["U"], kept))]
    return [z[k] * state[k] + (1 - z[k]) * new[k] for k in range(size)]


def states(w, embedded):
    """The state after each vector, in the order in which they are read."""
    state = [0.0] * len(w["b"])
    everything = []
    for e in embedded:
        state = gated_step(w, e, state)
        everything.append(state)
    return everything


def annotations(weights, source_ids):
    """h_1 … h_N, the forward half first; the end symbol has one too."""
    embedded = [weights["encoder.embedding"][word] for word in source_ids]
    forward = states(part(weights, "encoder.forward."), embedded)
    backward = states(part(weights, "encoder.backward."), embedded[::-1])[::-1]
    return [ahead + behind for ahead, behind in zip(forward, backward, strict=True)]


def look(w, state, annotated):
    """α over the positions of this source, and the context that it makes."""
    query = product(w["W_a"], state)
    energies = []
    for h in annotated:
        hidden = [tanh(x) for x in add(query, product(w["U_a"], h))]
        energies.append(sum(v * x for v, x in zip(w["v"], hidden, strict=True)))
    alpha = softmax(energies)
    context = [sum(a * h[k] for a, h in zip(alpha, annotated, strict=True)) for k in range(len(annotated[0]))]
    return alpha, context


def generate(w, state, e, context):
    """The distribution of a word from a state, the previous word's embedding and a context."""
    pairs = add(product(w["O_h"], state), product(w["O_y"], e), product(w["O_c"], context), w["b_O"])
    t = [max(pairs[2 * k], pairs[2 * k + 1]) for k in range(len(pairs) // 2)]
    scores = product(w["G"], t) if "G" in w else product(w["G_l"], product(w["G_r"], t))
    return softmax(add(scores, w["b_G"]))


def first_state(w, annotated):
    """s_0, from the backward half of the first annotation."""
    behind = annotated[0][len(annotated[0]) // 2 :]
    return [tanh(x) for x in add(product(w["V"], behind), w["b_V"])]


def positions(weights, source_ids, target_ids, switches):
    """For each target word (the end symbol is the last) its α and its distribution."""
    assert switches["phases"] in {"paper", "groundhog"}
    w, align = part(weights, "decoder."), part(weights, "align.")
    annotated = annotations(weights, source_ids)
    s = first_state(w, annotated)
    e = [0.0] * len(w["embedding"][0])
    everything = []
    for word in target_ids:
        alpha, context = look(align, s, annotated)
        if switches["phases"] == "paper":
            s = gated_step(w, e, s, context)
            distribution = generate(w, s, e, context)
            e = w["embedding"][word]
        else:
            distribution = generate(w, s, e, context)
            e = w["embedding"][word]
            s = gated_step(w, e, s, context)
        everything.append((alpha, distribution))
    return everything


def distributions(weights, source_ids, target_ids, switches):
    """For each target word (the end symbol is the last) the whole distribution, as probabilities."""
    return [distribution for _, distribution in positions(weights, source_ids, target_ids, switches)]


def alignments(weights, source_ids, target_ids, switches):
    """For each target word α over the source's positions, the end symbol's included."""
    return [alpha for alpha, _ in positions(weights, source_ids, target_ids, switches)]


def log_prob(weights, source_ids, target_ids, switches):
    """log p(y|x) of a pair; both sentences end with the end symbol."""
    words = distributions(weights, source_ids, target_ids, switches)
    return sum(log(p[word]) for p, word in zip(words, target_ids, strict=True))
