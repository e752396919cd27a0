"""Nearest vectors, which are known, of words and phrases."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from moses_rnn.analysis.neighbours import find_nearest, nearest_phrases, nearest_words
from moses_rnn.errors import CheckpointError, InputError
from moses_rnn.networks.rnnsearch import RnnSearch, RnnSearchConfig
from moses_rnn.networks.subwords import learn_subwords
from tests.analysis.attentive import search
from tests.networks.checkpoints import search_checkpoint
from tests.networks.networks import made

SMALL = {"hidden_size": 4, "embedding_size": 3, "alignment_size": 4, "maxout_size": 3}
OTHERS = {b"a": (2, 0), b"b": (3, 3), b"c": (0, 1), b"d": (-1, 0), b"e": (0, 9), b"nothing": (0, 0)}


@pytest.mark.parametrize(
    ("given", "vector", "count", "expected"),
    [
        (b"a", (2, 0), 9, [(b"b", 0.5**0.5), (b"c", 0), (b"e", 0), (b"nothing", 0), (b"d", -1)]),
        (b"a", (2, 0), 2, [(b"b", 0.5**0.5), (b"c", 0)]),
        (b"of another set", (0, 5), 2, [(b"c", 1), (b"e", 1)]),  # whose lengths do not count
    ],
)
def test_neighbours_are_those_in_the_same_direction(given, vector, count, expected):
    of_others = np.array([*OTHERS.values()], np.float64)
    (found,) = find_nearest([given], np.array([vector], np.float64), [*OTHERS], of_others, count)
    assert [text for text, _ in found] == [text for text, _ in expected]
    assert [cosine for _, cosine in found] == pytest.approx([cosine for _, cosine in expected])


def test_words_are_compared_with_their_shortlist():
    model = search()
    vectors = model.network.embeddings["target"].detach().double().numpy()
    found = nearest_words(model, [b"t2"], "target", 2)
    cosines = vectors[2:] @ vectors[2] / np.linalg.norm(vectors[2:], axis=1) / np.linalg.norm(vectors[2])
    best = 2 + np.argsort(-cosines)[1:3]
    assert [text for text, _ in found[0]] == [model.target_vocabulary.words[i] for i in best]
    with pytest.raises(InputError, match="expected words of the source shortlist, found 't2'"):
        nearest_words(model, [b"t2"], "source", 2)


def test_a_network_without_vectors_of_words_is_refused():
    network = torch.nn.Identity()  # as a pretrained one is
    network.config = search().config
    model = replace(search(), network=network, folder=Path("hf"))
    with pytest.raises(CheckpointError, match="hf: expected a network with embeddings of target words, found: RNNs"):
        nearest_words(model, [b"t2"], "target", 2)


def test_a_sentence_is_no_neighbour_of_itself():
    among = [b"s3", b"s2 s3", b"s2 s4", b"s4"]
    found = nearest_phrases(search(), [b"s2 s3", b"s5"], among, 9)
    assert [len(nearest) for nearest in found] == [3, 4]
    assert b"s2 s3" not in dict(found[0])


def test_a_word_is_found_by_its_subword():
    """Not by the piece of the same name, which stands inside words."""
    pieces = learn_subwords({b"ab": 9, b"cab": 8, b"cb": 1}, 9)
    (row,) = pieces.ids([b"ab"])
    assert pieces.words[row] != b"ab"
    assert b"ab" in pieces.words
    network = made(RnnSearch, RnnSearchConfig(*[len(pieces)] * 2, **SMALL), torch.float32)
    vectors = network.embeddings["target"].detach().double().numpy()
    others = [i for i in range(2, len(pieces)) if i != row]
    best = max(others, key=lambda i: vectors[i] @ vectors[row] / np.linalg.norm(vectors[i]))
    model = search_checkpoint(network, pieces, pieces)
    assert nearest_words(model, [b"ab"], "target", 1)[0][0][0] == pieces.words[best]
    with pytest.raises(InputError, match="expected words that are one subword, found 'cb'"):
        nearest_words(model, [b"cb"], "target", 1)
