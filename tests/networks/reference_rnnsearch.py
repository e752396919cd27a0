"""RNNsearch once more, number by number: the equations of Bahdanau et al. (2015), section 3 and appendix A, over scalars.

Shares no code with the package: no tensors, no batches, no masks. Tensors come as nested lists by the names of the
checkpoint format. The update gate z keeps the old state; the paper's keeps the new one. Both lists of ids end with the
end symbol.
"""

from math import tanh

from tests.networks.reference import add, encoder_steps, gated_step, product, side_of, softmax, word_scores


def states(w, embedded):
    """The state after each vector, in the order in which they are read."""
    return [h for _, _, h in encoder_steps(w, embedded)]


def annotations(weights, source_ids):
    """h_1 … h_N, the forward half first; the end symbol has one too."""
    embedded = [weights["encoder.embedding"][word] for word in source_ids]
    forward = states(side_of(weights, "encoder.forward"), embedded)
    backward = states(side_of(weights, "encoder.backward"), embedded[::-1])[::-1]
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


def first_state(w, annotated):
    """s_0, from the backward half of the first annotation."""
    behind = annotated[0][len(annotated[0]) // 2 :]
    return [tanh(x) for x in add(product(w["V"], behind), w["b_V"])]


def positions(weights, source_ids, target_ids, switches):
    """For each target word (the end symbol is the last) its α and its distribution."""
    assert switches["phases"] in {"paper", "groundhog"}
    w, align = side_of(weights, "decoder"), side_of(weights, "align")
    annotated = annotations(weights, source_ids)
    s = first_state(w, annotated)
    e = [0.0] * len(w["embedding"][0])
    everything = []
    for word in target_ids:
        alpha, context = look(align, s, annotated)
        if switches["phases"] == "paper":
            s = gated_step(w, e, s, context)
            distribution = softmax(word_scores(w, s, e, context))
            e = w["embedding"][word]
        else:
            distribution = softmax(word_scores(w, s, e, context))
            e = w["embedding"][word]
            s = gated_step(w, e, s, context)
        everything.append((alpha, distribution))
    return everything


def distributions(weights, source_ids, target_ids, switches):
    """For each target word (the end symbol is the last) the whole distribution, as probabilities."""
    return [distribution for _, distribution in positions(weights, source_ids, target_ids, switches)]
