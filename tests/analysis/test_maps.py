"""Maps of points whose neighbours are known."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from moses_rnn.analysis import maps
from moses_rnn.analysis.maps import (
    all_embeddings,
    choose_zooms,
    draw_map,
    nearest,
    phrase_points,
    principal_components,
    word_points,
)
from moses_rnn.errors import CheckpointError
from tests.analysis.attentive import lstm, search
from tests.models.bigrams import random_stepper
from tests.networks.checkpoints import cslm_checkpoint
from tests.networks.networks import CSLM_VOCABULARY, cslm_network


def clusters(count=4, each=15, dimensions=6, seed=1):
    random = np.random.default_rng(seed)
    centres = random.normal(size=(count, dimensions)) * 10
    return np.repeat(centres, each, axis=0) + random.normal(size=(count * each, dimensions))


def labels(points):
    return [f"p{i}" for i in range(len(points))]


def test_words_of_a_language_model_are_those_that_it_predicts():
    model = cslm_checkpoint(cslm_network(), CSLM_VOCABULARY)
    found, vectors = word_points(model, "target", 3)
    assert found == ["le", "chat", "dort"]
    assert vectors.tolist() == model.network.embedding[2:5].tolist()
    assert all_embeddings(model, "target")[1].tolist() == model.network.embedding[2:6].tolist()  # without that of <s>


@pytest.mark.parametrize(("model", "dimensions"), [(search(), 5), (lstm(), 2 * 5)])
def test_sentences_are_what_the_decoder_begins_with(model, dimensions):
    found, vectors = phrase_points(model, [b"s2 s9", b"s2 s99", b"s3", b"s2 s3"])
    assert found == ["s2 s9", "s3", "s2 s3"]
    assert (vectors.shape, vectors.dtype) == ((3, dimensions), np.float64)
    np.testing.assert_allclose(vectors, model.summaries([[2, 0], [3], [2, 3]]), atol=1e-7)


def test_a_network_without_summaries_is_refused_by_name():
    model = replace(search(), folder=Path("m"))
    vars(model)["make_stepper"] = lambda _compute, any_order: random_stepper(9, 8)
    with pytest.raises(
        CheckpointError, match="m: expected a network that represents a sentence as one vector, found: RNNs"
    ):
        phrase_points(model, [b"s2"])


def test_principal_components_are_the_axes_of_an_ellipse():
    points = np.array([[3.0, 0, 0], [-3, 0, 0], [0, 0, 1], [0, 0, -1]]) + 7
    np.testing.assert_allclose(np.abs(principal_components(points)), np.abs(points[:, [0, 2]] - 7), atol=1e-12)


# points that are too few, equal or flat for a map: what comes out all the same
DEGENERATE = [
    np.zeros((1, 5)),
    np.ones((30, 5)),
    np.arange(40.0)[:, None],
    np.repeat(np.eye(5), 8, axis=0),
    np.concatenate([np.zeros((40, 3)), np.eye(3), -np.eye(3)]),
]


@pytest.mark.parametrize("method", ["pca", "tsne"])
@pytest.mark.parametrize("points", DEGENERATE, ids=lambda points: f"{points.shape}")
def test_degenerate_points_have_places(method, points):
    if method == "tsne":
        pytest.importorskip("sklearn", reason="t-SNE is scikit-learn's")
    found = draw_map("t", labels(points), points, method)
    assert found.coordinates.shape == (len(points), 2)
    assert np.isfinite(found.coordinates).all()


def test_tsne_keeps_clusters_and_is_repeatable(monkeypatch):
    pytest.importorskip("sklearn", reason="t-SNE is scikit-learn's")
    points = clusters()
    monkeypatch.setattr(maps, "PERPLEXITY", 10)
    first, second = (draw_map("t", labels(points), points).coordinates for _ in range(2))
    assert first.tolist() == second.tolist()
    found, _ = nearest(first, 5)
    assert (found // 15 == np.arange(60)[:, None] // 15).mean() > 0.99
    monkeypatch.setattr(maps, "PERPLEXITY", 3)
    assert draw_map("t", labels(points), points).coordinates.tolist() != first.tolist()


def test_zooms_are_true_parts_apart_from_each_other():
    points = clusters(count=6)
    flat = np.repeat(np.array([[0, 0], [9, 0], [0, 9], [9, 9], [40, 0], [40, 40]]), 15, axis=0) + clusters(6, 15, 2) * 0.05  # fmt: skip
    flat[75:] = np.random.default_rng(3).permutation(flat[75:] * 1.0)  # the last part is wrong
    zooms = choose_zooms(points, flat, zooms=3, points=10)
    assert len(zooms) == 3
    for i, zoom in enumerate(zooms):
        assert len({point // 15 for point in zoom.points}) == 1
        for other in zooms[:i]:
            assert max(abs(zoom.x - other.x), abs(zoom.y - other.y)) > zoom.half / 1.1 + other.half / 1.1
    for count in range(1, 20):  # of which no point has as many others as two parts would hold
        choose_zooms(points[:count], flat[:count], zooms=1)
    assert choose_zooms(points[:10], flat[:10]) == []
