"""A map to draw."""

import numpy as np

from moses_rnn.analysis.maps import (
    Map,
    MapConfig,
    choose_zooms,
)

LABELS = ["<b>&amp;", "$x$ $", "日本 🙂", "a\\x1b[2J", "x" * 90, "e"]


def sketch():
    points = np.random.default_rng(1).normal(size=(80, 2))
    names = LABELS + [f"word{i}" for i in range(74)]
    return Map("a & b", names, points, choose_zooms(points, points, MapConfig(zooms=3)))
