"""RNN Encoder-Decoders once more, number by number: the equations of Cho et al. (2014), appendix A, as scalar loops.

Shares no code with the package: no tensors, no batches, no sharing. Tensors come as nested lists by the names of the
checkpoint format. Lists of ids end with the end symbol. Switches without a `cell` are those of gated cells whose encoder
resets before the product.
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


def lstm_step(w, a, h, m, peepholes, c=None):
    """The new output h and memory m; the output gate sees the new memory, the other gates the old one; all may see c."""
    size = len(w["b_m"])

    def drive(q, memory):
        context = [] if c is None else [product(w[f"C_{q}"], c)]
        x = add(product(w[f"W_{q}"], a), product(w[f"U_{q}"], h), *context, w[f"b_{q}"])
        if not peepholes or q == "m":
            return x
        return [x[k] + w[f"p_{q}"][k] * memory[k] for k in range(size)]

    i = [sigma(x) for x in drive("i", m)]
    f = [sigma(x) for x in drive("f", m)]
    candidate = [tanh(x) for x in drive("m", m)]
    memory = [f[k] * m[k] + i[k] * candidate[k] for k in range(size)]
    o = [sigma(x) for x in drive("o", memory)]
    return [o[k] * tanh(memory[k]) for k in range(size)], memory


def plain_step(w, e, h, c, cell):
    """A cell of one sum, of which C c is the decoder's alone."""
    context = [product(w["C"], c)] if c is not None else []
    x = add(product(w["W"], e), product(w["U"], h), *context, w["b"])
    if cell == "relu":
        return [max(0.0, value) for value in x]
    new = [tanh(value) for value in x]
    if cell == "leaky":
        new = [a * old + (1 - a) * young for a, old, young in zip(w["alpha"], h, new, strict=True)]
    return new


def step(w, e, state, c, switches):
    cell, (h, m) = switches.get("cell", "gru"), state
    if cell == "gru":
        reset = switches.get("encoder_reset", "before") if c is None else switches["decoder_reset"]
        return gated_step(w, e, h, c, reset), m
    if cell.startswith("lstm"):
        return lstm_step(w, e, h, m, cell == "lstm-peephole", c)
    return plain_step(w, e, h, c, cell), m


def summary(weights, source_ids, switches):
    w, size = side_of(weights, "encoder"), len(weights["decoder.b_V"])
    state = [0.0] * size, [0.0] * size
    for word in source_ids:
        state = step(w, w["embedding"][word], state, None, switches)
    if switches["summary"] == "last":
        return state[0]
    return [tanh(x) for x in add(product(w["V"], state[0]), w["b_V"])]


def distributions(weights, source_ids, target_ids, switches):
    """For each target word the whole distribution, as probabilities."""
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


def log_prob(words, target_ids):
    """log p of a target by the distributions of its words."""
    return sum(log(p[word]) for p, word in zip(words, target_ids, strict=True))
