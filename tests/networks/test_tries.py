"""Tries of phrases against a set of all their prefixes."""

import numpy as np
import pytest

from moses_rnn.networks.tries import build_trie
from moses_rnn.networks.vocabulary import END_ID
from tests.networks.id_pairs import flat


def check(trie, phrases, roots):
    """Assert that a trie has each prefix once, in the order of parents, and each phrase as a leaf."""
    leaves, nodes = [], set()
    paths = [(root,) for root in range(trie.roots)]
    for level in trie.levels:
        here = [(*paths[parent], word) for parent, word in zip(level.parents, level.words, strict=True)]
        assert len(set(here)) == len(here)
        assert (np.diff(level.parents) >= 0).all()
        nodes |= set(here)
        leaves += [here[i] for i in level.leaves]
        paths = [here[i] for i in level.alive]
    expected = [(root, *phrase, END_ID) for root, phrase in zip(roots, phrases, strict=True)]
    assert [leaves[i] for i in trie.leaf_of] == expected
    assert nodes == {path[:end] for path in expected for end in range(2, len(path) + 1)}
    assert (trie.nodes, trie.leaves) == (len(nodes), len(set(expected)))


@pytest.mark.parametrize("seed", range(20))
def test_random_phrases_give_the_tries_of_their_prefixes(seed):
    random = np.random.default_rng(seed)
    words = np.array([0, 2, 3, (1 << 30) + 2, (1 << 31) - 2])
    longest, count = int(random.integers(0, 6)), int(random.integers(1, 80))
    phrases = [random.choice(words, random.integers(0, longest + 1)).tolist() for _ in range(count)]
    roots = random.integers(0, 3, count)
    check(build_trie(*flat(phrases), roots), phrases, roots)
