"""Dependency trees: all of a size, drawn ones, and by definition which of them are projective."""

import itertools

from dependencies import Dependencies

LABELS = [b"nsubj", b"nsubj:pass", b"a|b", b"root"]


def sentence(heads, labels=None):
    """Words w1, w2 … of these heads; labels r1, r2 … if none are given."""
    numbers = range(1, len(heads) + 1)
    return Dependencies(
        tuple(b"w%d" % i for i in numbers), tuple(heads), tuple(labels or (b"r%d" % i for i in numbers))
    )


def ancestors(heads, word):
    """The heads above a word, up to the root; None if they go round in a circle."""
    above = []
    while word:
        word = heads[word - 1]
        if word in above:
            return None
        above.append(word)
    return above


def all_heads(count):
    """The heads of every tree of so many words."""
    for heads in itertools.product(range(count + 1), repeat=count):
        if all(ancestors(heads, word) for word in range(1, count + 1)):
            yield heads


def is_projective(heads):
    """Whether, for each arc, its head is above every word between the two."""
    for dependent, head in enumerate(heads, 1):
        for between in range(min(head, dependent) + 1, max(head, dependent)):
            if head not in ancestors(heads, between):
                return False
    return True


def random_heads(random, count):
    """A tree in which each word hangs on the root or on one that was hung before, in any order."""
    order = random.sample(range(1, count + 1), count)
    heads = [0] * count
    for i, word in enumerate(order):
        heads[word - 1] = random.choice([0, *order[:i]])
    return tuple(heads)
