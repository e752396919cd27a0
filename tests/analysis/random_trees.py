"""Trees drawn at random, nested as one would write them down; what they are as text and as spans, by recursion.

A phrase is a label and its parts, a word its tag and itself: ``("NP", [("DT", "the"), ("NN", "dog")])``.
"""

LABELS = ["S", "NP", "VP", "XX", "NP-SBJ=2", "-", "ё"]
TAGS = ["DT", "NN", "XX", ",", "-LRB-"]
WORDS = ["the", "dog", "(", "a)b", "|", "XX", "\N{NO-BREAK SPACE}", "..", "&#91;", "SH"]


def random_tree(random, depth=4):
    """A phrase of one to four parts, each of which is a word at the latest when the depth is used up."""
    parts = [
        random_tree(random, depth - 1)
        if depth > 1 and random.random() < 0.5
        else (random.choice(TAGS), random.choice(WORDS))
        for _ in range(random.randint(1, 4))
    ]
    return random.choice(LABELS), parts


def is_word(tree):
    return isinstance(tree[1], str)


def leaves_of(tree):
    """(tag, word) of each word."""
    return [tree] if is_word(tree) else [leaf for part in tree[1] for leaf in leaves_of(part)]


def bracketed(tree):
    if is_word(tree):
        return f"({tree[0]} {tree[1].replace('(', '-LRB-').replace(')', '-RRB-')})"
    return f"({tree[0]} {' '.join(map(bracketed, tree[1]))})"


def linearised(tree):
    if is_word(tree):
        return "XX"
    return " ".join([f"({tree[0]}", *map(linearised, tree[1]), f"){tree[0]}"])


def spans(tree, begin=0):
    """(label, first word, one behind the last) of each phrase."""
    if is_word(tree):
        return []
    inner, at = [], begin
    for part in tree[1]:
        inner += spans(part, at)
        at += len(leaves_of(part))
    return [(tree[0].encode(), begin, at), *inner]
