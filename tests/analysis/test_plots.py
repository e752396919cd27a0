"""Figures are sound, repeatable and escaped."""

from xml.etree import ElementTree

import numpy as np
import pytest

from moses_rnn.analysis.alignment_maps import AlignmentMap
from moses_rnn.analysis.lengths import compare_lengths
from moses_rnn.analysis.maps import Map, choose_zooms
from moses_rnn.analysis.plots import alignment_figure, lengths_figure, map_figure, picture
from moses_rnn.errors import InputError
from tests.analysis.texts import sentence

LABELS = ["<b>&amp;", "$x$ $", "日本 🙂", "a\\x1b[2J", "x" * 90, "e"]


def test_a_picture_is_sound_repeatable_and_escaped():
    pytest.importorskip("matplotlib", reason="pictures are matplotlib's")
    everything = Map("a & b", LABELS, np.array([[0.0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [2, 1]]), [])
    svg = picture(map_figure, everything, kind="svg")
    assert svg == picture(map_figure, everything, kind="svg")
    texts = {
        "".join(node.itertext()).strip() for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("text")
    }
    shown = ["<b>&", *LABELS[1:4]]  # without Moses's escapes; markup, formulas and control characters are text
    assert texts == {"a & b (6)", *shown, "x" * 43 + "…", "e"}
    assert picture(map_figure, everything, kind="png").startswith(b"\x89PNG")


def boxes(axes):
    """Of its labels alone, without the lines to their points."""
    from matplotlib.text import Text

    for text in axes.texts:
        text.get_window_extent()  # puts it in its place
        yield Text.get_window_extent(text)


def test_labels_do_not_cover_each_other():
    pytest.importorskip("matplotlib", reason="pictures are matplotlib's")

    points = np.random.default_rng(1).normal(size=(80, 2))
    crowded = Map("t", [f"long word {i}" for i in range(80)], points, choose_zooms(points, points, zooms=2))
    figure = map_figure(crowded)
    written = [list(boxes(axes)) for axes in figure.axes[1:]]  # the first has numbers only
    assert sum(map(len, written)) > 10
    for labels_of_axes in written:
        for i, box in enumerate(labels_of_axes):
            shrunk = box.shrunk(0.98, 0.98)
            assert not shrunk.count_overlaps(labels_of_axes[:i])


ALPHA = np.random.default_rng(1).dirichlet(np.ones(4), size=3).astype(np.float32)


def test_a_heat_map_names_its_words_and_is_repeatable():
    pytest.importorskip("matplotlib", reason="pictures are matplotlib's")
    source, target = [b"$x$", b"&apos;s", b"y" * 60], [b"<b>", b"t\xff"]
    one = AlignmentMap(1, source, target, ALPHA, frozenset([b"<b>"]))
    svg = picture(alignment_figure, one, kind="svg")
    assert svg == picture(alignment_figure, one, kind="svg")
    texts = [node for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("text")]
    shown = ["$x$", "'s", "y" * 43 + "…", "</s>", "<b>", "t\\xff", "</s>"]
    assert ["".join(node.itertext()).strip() for node in texts] == shown
    assert ["#888888" in ElementTree.tostring(node).decode() for node in texts] == [word == "<b>" for word in shown]
    assert picture(alignment_figure, one, kind="png").startswith(b"\x89PNG")


def test_an_endless_sentence_is_not_drawn():
    pytest.importorskip("matplotlib", reason="pictures are matplotlib's")
    long = AlignmentMap(7, [b"a"] * 120, [b"b"], np.zeros((1, 121), np.float32))
    with pytest.raises(InputError, match="line 7: expected at most 120 words a side to draw, .*, found 121"):
        picture(alignment_figure, long, kind="svg")


def test_curves_of_lengths_have_their_labels_and_counts():
    pytest.importorskip("matplotlib", reason="pictures are matplotlib's")
    texts = [sentence(b"t", length) for length in (4, 9, 9, 30)]
    scores = compare_lengths(texts, texts, dict.fromkeys(("_a.fr", "$b$", *"cdefgh"), texts))
    svg = picture(lengths_figure, scores, kind="svg")
    assert svg == picture(lengths_figure, scores, kind="svg")
    shown = [
        "".join(node.itertext()).strip() for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("text")
    ]
    assert {"$b$", "h", "BLEU", "2 sentences"} <= {*shown}
    assert any(text.endswith("_a.fr") for text in shown)
    assert picture(lengths_figure, scores, kind="png").startswith(b"\x89PNG")
