"""Figures of sentences: where a network looked, and BLEU by length.

As in `plots`, matplotlib is loaded only when something is drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from moses_rnn.analysis.alignment_maps import AlignmentMap
from moses_rnn.analysis.lengths import BINS, LengthScores
from moses_rnn.analysis.plots import (
    COLOURS,
    INCHES,
    MAP_DOTS_PER_INCH,
    MEASURED,
    SCATTER_DOTS_PER_INCH,
    picture,
    shortened,
)
from moses_rnn.errors import InputError
from moses_rnn.formats.grids import readable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CELL = 0.24  # inches of a word's row or column
MOST_CELLS = 120  # a side of a picture of words
WORD_POINTS = 9  # of letters
GAP = 0.12  # inches around a picture, and between words and cells
LINES = ("-", "--", ":")
HIDDEN = "\u200b"  # in front of a label that begins with an underscore, which a legend would leave out


def alignment_image(alignment: AlignmentMap, kind: str) -> bytes:
    """A heat map: the source across, the target down, the darker the more a word looked there; white is 0, black 1.

    Words that are ``<unk>`` to the network are grey.

    Raises:
        InputError: a side has more than `MOST_CELLS` words.
    """
    most = max(alignment.alpha.shape)
    if most > MOST_CELLS:
        expected = f"at most {MOST_CELLS} words a side to draw, end symbols included"
        raise InputError(
            f"line {alignment.line}: expected {expected}, found {most}", advice="Without --output they are printed."
        )
    return picture(lambda: _alignment_figure(alignment), kind, dots_per_inch=MAP_DOTS_PER_INCH)


def _alignment_figure(alignment: AlignmentMap) -> Figure:
    """As large as its words need."""
    from matplotlib.figure import Figure  # noqa: PLC0415, an extra: and without pyplot, which looks for a screen

    figure = Figure(dpi=MEASURED)
    sides = [[shortened(readable(word)) for word in words] for words in (alignment.columns, alignment.rows)]
    above, beside = (_widest(figure, words) + 2 * GAP for words in sides)
    wide, high = (CELL * len(words) for words in sides)
    width, height = beside + wide + GAP, above + high + GAP
    figure.set_size_inches(width, height)
    axes = figure.add_axes((beside / width, GAP / height, wide / width, high / height))
    axes.pcolormesh(alignment.alpha, cmap="Greys", vmin=0, vmax=1, edgecolors="#cccccc", linewidth=0.4)
    axes.invert_yaxis()
    axes.tick_params(length=0, pad=GAP * 72 / 2, labelsize=WORD_POINTS, top=True, labeltop=True, labelbottom=False)
    for axis, labels, words in zip((axes.xaxis, axes.yaxis), sides, (alignment.columns, alignment.rows), strict=True):
        axis.set_ticks(np.arange(len(labels)) + 0.5, labels, parse_math=False)
        for text, word in zip(axis.get_ticklabels(), words, strict=True):
            text.set_color("#888888" if word in alignment.unknown else "#000000")
    axes.tick_params(axis="x", labelrotation=90)
    return figure


def _widest(figure: Figure, labels: list[str]) -> float:
    """Inches of the widest label."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415, an extra

    renderer = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
    text = figure.text(0, 0, "", fontsize=WORD_POINTS, parse_math=False)
    widths = []
    for label in labels:
        text.set_text(label)
        widths.append(text.get_window_extent(renderer).width / figure.dpi)
    text.remove()
    return max(widths, default=0.0)


def lengths_image(scores: LengthScores, kind: str) -> bytes:
    """A curve for each system, of BLEU over the length of the source."""
    return picture(lambda: _lengths_figure(scores), kind, dots_per_inch=SCATTER_DOTS_PER_INCH)


def _lengths_figure(scores: LengthScores) -> Figure:
    from matplotlib.figure import Figure  # noqa: PLC0415, an extra: and without pyplot, which looks for a screen

    figure = Figure(figsize=(INCHES * 1.4, INCHES), layout="constrained")
    axes = figure.add_subplot()
    bins = scores.parts[: len(BINS)]
    for number, (name, bleu) in enumerate(scores.bleu.items()):
        heights = [np.nan if value is None else value for value in bleu[: len(BINS)]]
        style = LINES[number // len(COLOURS) % len(LINES)]
        axes.plot(
            range(len(bins)),
            heights,
            style,
            marker="o",
            color=COLOURS[number % len(COLOURS)],
            label=f"{HIDDEN * name.startswith('_')}{name}",
        )
    axes.set_xticks(range(len(bins)), [f"{part.title}\n{len(part.sentences):,} sentences" for part in bins], fontsize=7)
    axes.set_xlim(-0.3, len(bins) - 0.7)
    axes.set_xlabel("words of the source")
    axes.set_ylabel("BLEU")
    for text in axes.legend(fontsize="small").get_texts():
        text.set_parse_math(False)
    return figure
