"""Figures are sound, repeatable and escaped."""

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from moses_rnn.analysis.alignment_maps import AlignmentMap
from moses_rnn.analysis.gradients import GradientNorms
from moses_rnn.analysis.lengths import compare_lengths
from moses_rnn.analysis.maps import Map, Zoom
from moses_rnn.errors import InputError
from tests.analysis.texts import sentence

plots = pytest.importorskip("moses_rnn.analysis.plots", reason="pictures are matplotlib's")


def texts_of(svg):
    return [
        "".join(node.itertext()).strip() for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("text")
    ]


MAP = Map(
    "a & b",
    ["<b>&amp;", "$x$ $", "日本 🙂", "a\\x1b[2J", "x" * 90, "e"],
    np.array([[0.0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [2, 1]]),
    [],
)
ALPHA = np.random.default_rng(1).dirichlet(np.ones(4), size=3).astype(np.float32)
ALIGNMENT = AlignmentMap(1, [b"$x$", b"&apos;s", b"y" * 60], [b"<b>", b"t\xff"], ALPHA, frozenset([b"<b>"]))
TEXTS = [sentence(b"t", length) for length in (4, 9, 9, 30)]
CURVES = compare_lengths(TEXTS, TEXTS, dict.fromkeys(("_a.fr", "$b$", *"cdefgh"), TEXTS))
GRADIENTS = GradientNorms(
    np.array([9, 8, 7]), {"\udce9": np.ones(3), "_a": np.array([1.0, 1e-3, 1e-6]), "$b$": np.array([2.0, 0, 0])}
)
# without Moses's escapes; markup, formulas and control characters are text
SHOWN = {
    "map": (plots.map_figure, MAP, {"a & b (6)", "<b>&", "$x$ $", "日本 🙂", "a\\x1b[2J", "x" * 43 + "…", "e"}),
    "alignment": (
        plots.alignment_figure,
        ALIGNMENT,
        {"$x$", "'s", "y" * 43 + "…", "</s>", "<b>", "t\\xff", "source", "target"},
    ),
    "curves": (plots.lengths_figure, CURVES, {"$b$", "h", "BLEU", "\u200b_a.fr"}),
    "logarithms": (plots.gradients_figure, GRADIENTS, {"$b$", "k", "\u200b_a", "\\xe9"}),
}


@pytest.mark.parametrize("case", SHOWN)
def test_a_picture_is_sound_repeatable_and_escaped(case):
    figure, data, shown = SHOWN[case]
    svg = plots.picture(figure, data, kind="svg")
    assert svg == plots.picture(figure, data, kind="svg")
    assert {*texts_of(svg)} >= shown
    assert case in {"curves", "logarithms"} or {*texts_of(svg)} == shown
    assert plots.picture(figure, data, kind="png").startswith(b"\x89PNG")


def test_a_report_has_the_percentage_of_a_part_only_in_its_caption():
    zoomed = replace(MAP, zooms=[Zoom(4, 0.5, 1, [4, 5], 0.25)])
    assert "1: 25% of nearest neighbours are also the network's" in texts_of(plots.picture(plots.map_figure, zoomed))
    assert "%" not in "".join(texts_of(plots.picture(plots.map_part_figure, zoomed, 0)))


def test_unknown_words_are_grey():
    nodes = ElementTree.fromstring(plots.picture(plots.alignment_figure, ALIGNMENT)).iter()
    grey = ["".join(node.itertext()).strip() for node in nodes if node.tag.endswith("text") and "#888888" in ElementTree.tostring(node).decode()]  # fmt: skip
    assert grey == ["<b>"]


def test_an_endless_sentence_is_not_drawn():
    long = AlignmentMap(7, [b"a"] * 120, [b"b"], np.zeros((1, 121), np.float32))
    with pytest.raises(InputError, match="line 7: expected at most 120 words per side to draw, .*, found 121"):
        plots.picture(plots.alignment_figure, long, kind="svg")
