"""Tries of phrases against a set of all their prefixes."""

import numpy as np
import pytest
import torch

from moses_rnn.networks.tries import build_trie, copy_levels, take_phrases
from moses_rnn.networks.vocabulary import END_ID
from tests.networks.id_pairs import flat
from tests.networks.pretended_device import DEVICE, pretended_device


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
    """Few words, so that prefixes repeat; lengths even and odd, words of as many bits as ids may have."""
    random = np.random.default_rng(seed)
    words = np.array([0, 2, 3, (1 << 30) + 2, (1 << 31) - 2])
    longest, count = int(random.integers(0, 6)), int(random.integers(1, 80))
    phrases = [random.choice(words, random.integers(0, longest + 1)).tolist() for _ in range(count)]
    roots = random.integers(0, 3, count)
    check(build_trie(*flat(phrases), roots), phrases, roots)


def test_without_roots_there_is_one():
    phrases = [[2, 3], [2], [3, 3]]
    trie = build_trie(*flat(phrases))
    assert trie.roots == 1
    check(trie, phrases, np.zeros(3, np.int64))


def test_leaves_are_numbered_level_by_level():
    trie = build_trie(*flat([[5, 6], [5], [], [5, 6], [4]]))
    assert trie.leaf_of.tolist() == [3, 2, 0, 3, 1]
    assert [len(level.leaves) for level in trie.levels] == [1, 2, 1]


PHRASES = [[5, 6], [], [5], [5, 6, 7], [4]]


def test_levels_on_the_processor_are_the_arrays_themselves():
    levels = build_trie(*flat(PHRASES)).levels
    for level, tensors in zip(levels, copy_levels(levels, torch.device("cpu")), strict=True):
        for array, tensor in zip(level, tensors, strict=True):
            assert tensor.tolist() == array.tolist()
            assert len(array) == 0 or np.shares_memory(array, tensor.numpy())


@pytest.mark.parametrize("phrases", [PHRASES, [[]], []], ids=["some", "an empty one", "none"])
def test_levels_are_copied_in_one_piece_without_waiting(phrases):
    levels = build_trie(*flat(phrases)).levels
    with pretended_device() as device:
        copied = copy_levels(levels, DEVICE)
        assert (device.arrivals, device.waits) == (1, [])
        assert [[tensor.tolist() for tensor in level] for level in copied] == [
            [array.tolist() for array in level] for level in levels
        ]


def test_some_phrases_are_taken_in_the_order_asked_for():
    ids, lengths = np.array([2, 3, 4, 5, 6]), np.array([2, 0, 3])
    taken, taken_lengths = take_phrases(ids, lengths, np.array([2, 1, 0, 2]))
    assert taken.tolist() == [4, 5, 6, 2, 3, 4, 5, 6]
    assert taken_lengths.tolist() == [3, 0, 2, 3]
