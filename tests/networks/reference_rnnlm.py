"""The recurrent language model once more, number by number: Mikolov et al. (2010), section 2, as loops over scalars.

Shares no code with the package: no tensors, no batches. Tensors come as nested lists by the names of the checkpoint
format. All lists of ids end with the end symbol; `<s>` is the last row of the embedding.
"""

import copy
from math import log

from tests.networks.reference import add, product, sigma, softmax


def first_state(weights):
    return [0.1] * len(weights["U"])


def next_state(weights, word, state):
    return [sigma(x) for x in add(weights["embedding"][word], product(weights["U"], state))]


def distributions(weights, ids):
    """For each word the whole distribution, as probabilities."""
    state, everything = first_state(weights), []
    for word in [len(weights["embedding"]) - 1, *ids[:-1]]:
        state = next_state(weights, word, state)
        everything.append(softmax(product(weights["G"], state)))
    return everything


def log_probs(weights, ids):
    return [log(p[word]) for p, word in zip(distributions(weights, ids), ids, strict=True)]


def zeros_like(weights):
    return {name: [[0.0] * len(row) for row in rows] for name, rows in weights.items()}


def add_word_gradient(gradient, weights, states, read, word, reach=0):
    """Add that of -log p of a word, which the last state predicts; its error goes `reach` steps back, or all if 0.

    `read` are the words that led from each state to the next.
    """
    state = states[-1]
    errors = softmax(product(weights["G"], state))
    errors[word] -= 1
    back = [0.0] * len(state)
    for k, error in enumerate(errors):
        for j, s in enumerate(state):
            gradient["G"][k][j] += error * s
            back[j] += error * weights["G"][k][j]
    steps = len(read) if reach == 0 else min(reach, len(read))
    for t in range(len(read) - 1, len(read) - 1 - steps, -1):
        inside = [b * s * (1 - s) for b, s in zip(back, states[t + 1], strict=True)]
        for i, value in enumerate(inside):
            gradient["embedding"][read[t]][i] += value
            for j, s in enumerate(states[t]):
                gradient["U"][i][j] += value * s
        back = [sum(inside[i] * weights["U"][i][j] for i in range(len(inside))) for j in range(len(inside))]


def sentence_gradient(weights, ids, reach=0):
    """That of -log p of all words of a sentence."""
    gradient, states, read = zeros_like(weights), [first_state(weights)], []
    for word in ids:
        read.append(ids[len(read) - 1] if read else len(weights["embedding"]) - 1)
        states.append(next_state(weights, read[-1], states[-1]))
        add_word_gradient(gradient, weights, states, read, word, reach)
    return gradient


def stepped(weights, gradient, rate):
    return {
        name: [[x - rate * g for x, g in zip(*both, strict=True)] for both in zip(rows, gradient[name], strict=True)]
        for name, rows in weights.items()
    }


def dynamic_by_sentences(weights, sentences, rate):
    """log p of each word of each sentence, the weights taking a step after each; and the weights in the end."""
    values, weights = [], copy.deepcopy(weights)
    for ids in sentences:
        values.append(log_probs(weights, ids))
        weights = stepped(weights, sentence_gradient(weights, ids), rate)
    return values, weights


def dynamic_by_words(weights, sentences, rate):
    """The same with a step after each word; a sentence's states stay what they were."""
    values, weights = [], copy.deepcopy(weights)
    for ids in sentences:
        states, read = [first_state(weights)], []
        values.append([])
        for word in ids:
            read.append(ids[len(read) - 1] if read else len(weights["embedding"]) - 1)
            states.append(next_state(weights, read[-1], states[-1]))
            values[-1].append(log(softmax(product(weights["G"], states[-1]))[word]))
            gradient = zeros_like(weights)
            add_word_gradient(gradient, weights, states, read, word)
            weights = stepped(weights, gradient, rate)
    return values, weights
