"""Figures 4 and 5 of the paper: words and phrases as points on a map. Points are near if their vectors are.

The paper uses Barnes-Hut t-SNE (van der Maaten, 2013); we use scikit-learn's. PCA needs no library. Enlarged are parts
in which a point's neighbours on the map are also its neighbours in the network.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from moses_rnn.analysis.grids import Grid, readable
from moses_rnn.analysis.scored_table import SEED, Floats, Ints
from moses_rnn.errors import CheckpointError, MosesRnnError, number_of
from moses_rnn.models.annotated import source_reader
from moses_rnn.models.model import Model
from moses_rnn.networks.finite import finite_array
from moses_rnn.networks.vocabulary import END_ID
from moses_rnn.table.phrases import words

PERPLEXITY = 30.0  # of t-SNE; lower for fewer than three times as many points
FEWEST = 5  # points for t-SNE; for fewer, PCA is better
ZOOMS = 4  # parts that are enlarged
ZOOM_POINTS = 24  # in each part, about
LEAST_ZOOM = 3  # points of a part
NEIGHBOURS = 10  # that are compared on the map and in the network


class Zoom(NamedTuple):
    """A square part of a map."""

    x: float  # centre
    y: float
    half: float  # of a side
    points: list[int]
    purity: float  # share of neighbours on the map that are also neighbours in the network


@dataclass(frozen=True)
class Map:
    """Labelled points of a map; `coordinates` is points × 2."""

    title: str
    labels: list[str]
    coordinates: Floats
    zooms: list[Zoom]


def word_points(model: Model, side: str, count: int) -> tuple[list[str], Floats]:
    """Return the most frequent words (Figure 4) and their embeddings, points × E; see `all_embeddings`."""
    names, embeddings = all_embeddings(model, side)
    return [readable(word) for word in names[:count]], embeddings[:count].astype(np.float64)  # ids go by frequency


def all_embeddings(model: Model, side: str) -> tuple[list[bytes], npt.NDArray[np.floating[Any]]]:
    """Return the words of the "source" or "target" shortlist and their embeddings, words × E.

    Raises CheckpointError if the network has no embeddings of that side.
    """
    embeddings = getattr(model.network, "embeddings", {})  # a pretrained network has none of whole words
    if side not in embeddings:
        expected = f"a network with embeddings of {side} words"
        raise CheckpointError(f"{model.folder}: expected {expected}, found: {model.network_title}")
    names = model.vocabularies[side].words
    return names[END_ID + 1 :], finite_array(embeddings[side])[END_ID + 1 : len(names)]


def phrase_points(model: Model, phrases: Sequence[bytes]) -> tuple[list[str], Floats]:
    """Return phrases or sentences, and the vectors from which the decoder starts (Figure 5), points × dimensions.

    If phrases differ only in unknown words, only the first is returned. See `Model.summaries`.
    """
    ids_of = source_reader(model)
    distinct: dict[tuple[int, ...], bytes] = {}
    for phrase in phrases:
        distinct.setdefault(tuple(ids_of(words(phrase))), phrase)
    ids, labels = list(distinct), [readable(phrase) for phrase in distinct.values()]
    return labels, model.summaries(ids).astype(np.float64)


def draw_map(title: str, labels: Sequence[str], vectors: Floats, method: str = "tsne", zooms: int = ZOOMS) -> Map:
    """Lay points out by "tsne" or "pca", and choose the parts to enlarge. Equal points give equal maps."""
    coordinates = principal_components(vectors)
    if method == "tsne" and len(np.unique(vectors, axis=0)) >= FEWEST:
        with np.errstate(all="ignore"):  # reported below
            coordinates = _tsne(vectors, coordinates)
    if not np.isfinite(coordinates).all():
        found = f"numbers of the network as large as {np.abs(vectors).max():g}"
        raise MosesRnnError(f"{title}: expected points that can be laid out, found {found}")
    return Map(title, list(labels), coordinates, choose_zooms(vectors, coordinates, zooms))


def principal_components(vectors: Floats) -> Floats:
    """Return coordinates in the two directions in which points differ most; points × 2.

    The largest coordinate in each direction is positive, so that the signs are not left to chance.
    """
    centred = vectors - vectors.mean(axis=0)
    coordinates = np.zeros((len(vectors), 2))
    if len(vectors) > 1:
        u, s, _ = np.linalg.svd(centred, full_matrices=False)
        components = (u * s)[:, :2]
        signs = np.sign(components[np.abs(components).argmax(axis=0), np.arange(components.shape[1])])
        coordinates[:, : components.shape[1]] = components * np.where(signs == 0, 1, signs)
    return coordinates


def _tsne(vectors: Floats, start: Floats) -> Floats:
    perplexity = min(PERPLEXITY, (len(vectors) - 1) / 3)
    start = (start / start[:, 0].std() * 1e-4).astype(np.float32)  # as scikit-learn scales its own
    manifold, threads = map(importlib.import_module, ("sklearn.manifold", "threadpoolctl"))  # they ship no types
    tsne = manifold.TSNE(perplexity=perplexity, init=start, random_state=SEED, n_jobs=1)
    with threads.threadpool_limits(1):  # several threads would add in a different order each time
        return np.asarray(tsne.fit_transform(vectors.astype(np.float32)), np.float64)


def nearest(points: Floats, count: int) -> tuple[Ints, Floats]:
    """Return the nearest other points of each point, nearest first, and their distances; both points × count."""
    squares = (points**2).sum(1)
    d = np.maximum(squares[:, None] + squares - 2 * points @ points.T, 0)
    np.fill_diagonal(d, -1)  # itself comes first
    members = np.argsort(d, axis=1, kind="stable")[:, 1 : count + 1]
    return members, np.sqrt(np.take_along_axis(d, members, 1))


def choose_zooms(vectors: Floats, coordinates: Floats, zooms: int = ZOOMS, points: int = ZOOM_POINTS) -> list[Zoom]:
    """Choose parts of a map that are true to the network, dense, and far from each other; the best first.

    A part is a point with its nearest points on the map. Its purity is the share of nearest points on the map that are
    also among the nearest in the network, as a mean over its points. Its worth is its purity times the distance within
    which there are twice as many points, divided by its own radius.
    """
    others = len(coordinates) - 1
    size = min(points, len(coordinates) // (2 * zooms), others // 2)
    if size < LEAST_ZOOM:
        return []
    members, distances = nearest(coordinates, 2 * size)
    half = distances[:, size - 1]
    there, here = (nearest(places, min(NEIGHBOURS, others))[0] for places in (vectors, coordinates))
    purity = (there[:, :, None] == here[:, None, :]).any(1).mean(1)[members[:, :size]].mean(1)
    worth = np.where(half > 0, purity * distances[:, -1] / np.maximum(half, 1e-30), 0)
    extent = float(np.ptp(coordinates, axis=0).max())
    edge = 1.1 * half
    centres: list[int] = []
    for apart in (extent / 4, 0.0):  # far from each other if possible, otherwise at least not overlapping
        for i in np.argsort(-worth, kind="stable"):
            gaps = [float(np.abs(coordinates[i] - coordinates[j]).max()) - edge[i] - edge[j] for j in centres]
            if len(centres) < zooms and worth[i] > 0 and min(gaps, default=extent) > apart:
                centres.append(int(i))
    return [_zoom(coordinates, i, float(edge[i]), float(purity[i])) for i in centres]


def _zoom(coordinates: Floats, centre: int, half: float, purity: float) -> Zoom:
    away = np.abs(coordinates - coordinates[centre]).max(1)
    inside = np.flatnonzero(away <= half)
    x, y = coordinates[centre].tolist()
    return Zoom(x, y, half, inside[np.argsort(away[inside], kind="stable")].tolist(), purity)


def as_text(map_: Map) -> list[str]:
    """List the points in each enlarged part, the middle one first."""
    lines = [f"{map_.title}: {number_of(len(map_.labels), 'point')}"]
    for number, zoom in enumerate(map_.zooms, start=1):
        lines += [
            "",
            f"{number}: {number_of(len(zoom.points), 'point')}, {zoom.purity:.0%} of nearest neighbours are "
            "also the network's",
        ]
        lines += [f"    {map_.labels[i]}" for i in zoom.points]
    return lines


def as_grid(map_: Map) -> Grid:
    """Return a row for each point, with the number of its enlarged part, if any."""
    zoom_of = {i: number for number, zoom in enumerate(map_.zooms, start=1) for i in zoom.points}
    points = enumerate(zip(map_.labels, map_.coordinates.tolist(), strict=True))
    return Grid(
        "",
        ("label", "x", "y", "zoom"),
        [(label, f"{x:.6g}", f"{y:.6g}", zoom_of.get(i)) for i, (label, (x, y)) in points],
    )


def as_json(map_: Map) -> str:
    """Format a map for programs: its fields as JSON. Points count from 0."""
    zooms, coordinates = [zoom._asdict() for zoom in map_.zooms], np.round(map_.coordinates, 6).tolist()
    record = {"title": map_.title, "labels": map_.labels, "coordinates": coordinates, "zooms": zooms}
    return json.dumps(record, indent=1, ensure_ascii=False)
