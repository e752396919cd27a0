"""Figures are sound, repeatable and escaped."""

from xml.etree import ElementTree

import numpy as np
import pytest

from moses_rnn.analysis.maps import Map, choose_zooms
from moses_rnn.analysis.plots import map_image

LABELS = ["<b>&amp;", "$x$ $", "日本 🙂", "a\\x1b[2J", "x" * 90, "e"]


def test_a_picture_is_sound_repeatable_and_escaped():
    pytest.importorskip("matplotlib", reason="pictures are matplotlib's")
    everything = Map("a & b", LABELS, np.array([[0.0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [2, 1]]), [])
    svg = map_image(everything, "svg")
    assert svg == map_image(everything, "svg")
    texts = {
        "".join(node.itertext()).strip() for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("text")
    }
    shown = ["<b>&", *LABELS[1:4]]  # without Moses's escapes; markup, formulas and control characters are text
    assert texts == {"a & b (6)", *shown, "x" * 43 + "…", "e"}
    assert map_image(everything, "png").startswith(b"\x89PNG")


def boxes(axes):
    """Of its labels alone, without the lines to their points."""
    from matplotlib.text import Text

    for text in axes.texts:
        text.get_window_extent()  # puts it in its place
        yield Text.get_window_extent(text)


def test_labels_do_not_cover_each_other():
    pytest.importorskip("matplotlib", reason="pictures are matplotlib's")
    from moses_rnn.analysis.plots import _map_figure

    points = np.random.default_rng(1).normal(size=(80, 2))
    crowded = Map("t", [f"long word {i}" for i in range(80)], points, choose_zooms(points, points, zooms=2))
    figure = _map_figure(crowded)
    written = [list(boxes(axes)) for axes in figure.axes[1:]]  # the first has numbers only
    assert sum(map(len, written)) > 10
    for labels_of_axes in written:
        for i, box in enumerate(labels_of_axes):
            shrunk = box.shrunk(0.98, 0.98)
            assert not shrunk.count_overlaps(labels_of_axes[:i])
