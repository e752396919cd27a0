"""α of chosen targets, held against the network asked for one prefix at a time."""

import json

import numpy as np
import pytest
import torch

from moses_rnn.translation import translate
from moses_rnn.translation.search import Hypothesis
from moses_rnn.translation.translate import align, format_alignment, links
from tests.networks.id_pairs import flat
from tests.translation.writers import Attentive

SOURCES = [(2, 3, 4), (2, 3, 4), (5,), (6, 6, 7, 8, 2), (5,)]
WRITTEN = [
    Hypothesis((2, 5, 3), -1.0, ended=True),
    Hypothesis((), -1.0, ended=True),
    Hypothesis((4, 4, 4, 4), -1.0, ended=False),
    Hypothesis((7, 0), -1.0, ended=True),
    Hypothesis((2,), -1.0, ended=True),
]


def expected(network, source, hypothesis):
    """Row after row, of this pair alone."""
    terms, _ = network.read(*flat([source]))
    prefixes, rows = network.start(terms), []
    for word in [*hypothesis.words, *[0] * hypothesis.ended]:
        rows.append(network.alignment(terms, prefixes)[0].tolist())
        prefixes = network.step(terms, prefixes, torch.tensor([0]), torch.tensor([word]))
    return np.array(rows)


@pytest.mark.parametrize("at_once", [1 << 22, 60, 1])
def test_alpha_is_that_of_each_pair_alone(monkeypatch, at_once):
    monkeypatch.setattr(translate, "NUMBERS_AT_ONCE", at_once)
    network = Attentive()
    alphas = list(align(network, SOURCES, WRITTEN))
    assert len(alphas) == len(WRITTEN)
    for source, hypothesis, alpha in zip(SOURCES, WRITTEN, alphas, strict=True):
        assert alpha.shape == (len(hypothesis.words) + hypothesis.ended, len(source) + 1)
        np.testing.assert_allclose(alpha, expected(network, source, hypothesis), atol=1e-6)
        np.testing.assert_allclose(alpha.sum(1), 1, atol=1e-6)


def test_nothing_is_aligned_to_nothing():
    assert list(align(Attentive(), [], [])) == []


def test_words_are_linked_to_the_source_word_that_they_look_at_most():
    alpha = np.array([[0.2, 0.3, 0.5], [0.4, 0.4, 0.2], [0.0, 0.0, 1.0], [0.9, 0.1, 0.0]], np.float32)
    assert links(alpha, 3) == (1, 0, 0)
    assert links(alpha, 0) == ()


def test_a_record_names_the_words_of_rows_and_columns():
    alpha = np.array([[0.25, 0.333333, 0.416667], [1.0, 0.0, 0.0]], np.float32)
    line = format_alignment(3, ["été".encode(), b"\xff"], [b"summer"], alpha)
    assert line.endswith(b"}\n")
    assert json.loads(line) == {
        "line": 3,
        "source": ["été", "\udcff"],
        "target": ["summer"],
        "alpha": [[0.25, 0.3333, 0.4167], [1.0, 0.0, 0.0]],
    }
