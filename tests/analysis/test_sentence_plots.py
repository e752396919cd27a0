"""Pictures of sentences are sound, repeatable and escaped."""

from xml.etree import ElementTree

import numpy as np
import pytest

from moses_rnn.analysis.alignment_maps import AlignmentMap
from moses_rnn.analysis.lengths import compare_lengths
from moses_rnn.analysis.sentence_plots import alignment_image, lengths_image
from moses_rnn.errors import InputError
from tests.analysis.texts import sentence

ALPHA = np.random.default_rng(1).dirichlet(np.ones(4), size=3).astype(np.float32)


def test_a_heat_map_names_its_words_and_is_repeatable():
    pytest.importorskip("matplotlib", reason="pictures are matplotlib's")
    source, target = [b"$x$", b"&apos;s", b"y" * 60], [b"<b>", b"t\xff"]
    one = AlignmentMap(1, source, target, ALPHA, frozenset([b"<b>"]))
    svg = alignment_image(one, "svg")
    assert svg == alignment_image(one, "svg")
    texts = [node for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("text")]
    shown = ["$x$", "'s", "y" * 43 + "…", "</s>", "<b>", "t\\xff", "</s>"]
    assert ["".join(node.itertext()).strip() for node in texts] == shown
    assert ["#888888" in ElementTree.tostring(node).decode() for node in texts] == [word == "<b>" for word in shown]
    assert alignment_image(one, "png").startswith(b"\x89PNG")


def test_a_heat_map_has_room_for_its_words():
    pytest.importorskip("matplotlib", reason="pictures are matplotlib's")
    from moses_rnn.analysis.sentence_plots import _alignment_figure

    one = AlignmentMap(1, [b"W" * 30, b"b", b"c"], [b"wide " * 3, b"M" * 20], ALPHA)
    figure = _alignment_figure(one)
    figure.canvas.draw()
    (axes,) = figure.axes
    labels = [text.get_window_extent() for text in (*axes.get_xticklabels(), *axes.get_yticklabels())]
    cells = axes.get_window_extent()
    assert len(labels) == 4 + 3
    for box in labels:
        assert figure.bbox.x0 <= box.x0 <= box.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= box.y0 <= box.y1 <= figure.bbox.y1
        assert box.y0 >= cells.y1 or box.x1 <= cells.x0
    for side in (labels[:4], labels[4:]):
        assert not any(box.count_overlaps(side[:i]) for i, box in enumerate(side))


def test_an_endless_sentence_is_not_drawn():
    pytest.importorskip("matplotlib", reason="pictures are matplotlib's")
    long = AlignmentMap(7, [b"a"] * 120, [b"b"], np.zeros((1, 121), np.float32))
    with pytest.raises(InputError, match="line 7: expected at most 120 words a side to draw, .*, found 121"):
        alignment_image(long, "svg")


def test_curves_of_lengths_have_their_labels_and_counts():
    pytest.importorskip("matplotlib", reason="pictures are matplotlib's")
    texts = [sentence(b"t", length) for length in (4, 9, 9, 30)]
    scores = compare_lengths(texts, texts, dict.fromkeys(("_a.fr", "$b$", *"cdefgh"), texts))
    svg = lengths_image(scores, "svg")
    assert svg == lengths_image(scores, "svg")
    shown = [
        "".join(node.itertext()).strip() for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("text")
    ]
    assert {"$b$", "h", "BLEU", "2 sentences"} <= {*shown}
    assert any(text.endswith("_a.fr") for text in shown)
    assert lengths_image(scores, "png").startswith(b"\x89PNG")
