"""Draw figures as files. Import this module only to draw: no other imports matplotlib, which is optional."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure  # pyplot would look for a screen
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from moses_rnn.analysis.agreement import BIN, Scatter
from moses_rnn.analysis.agreement import BINS as CELLS
from moses_rnn.analysis.alignment_maps import MOST_CELLS, AlignmentMap
from moses_rnn.analysis.gradients import GradientNorms
from moses_rnn.analysis.grids import readable, unescaped
from moses_rnn.analysis.lengths import LengthScores
from moses_rnn.analysis.maps import Map, Zoom
from moses_rnn.analysis.scored_table import Floats
from moses_rnn.errors import InputError, number_of

STYLE: Any = {"svg.hashsalt": "moses-rnn", "svg.fonttype": "none", "font.family": "DejaVu Sans"}
SIDE = 7.0  # inches, of the whole map
PART_SIDE = 4.2  # of a map or part in a report, where its letters are as large as the text around it
MEASURED = 288  # dots per inch; enough to measure labels exactly
DOTS = MEASURED / 72  # in a typographic point
FEW = 60  # points; with more, the whole map has no labels
LONGEST = 44  # characters of the longest label
COLOURS = ("#c0392b", "#2471a3", "#1e8449", "#af601a", "#7d3c98", "#148f77")
GREY = "#444444"
# Where a label may be: its offset in typographic points, and its alignment there. Near places come first.
PLACES = [
    (dx * away, dy * away, horizontal, vertical)
    for away in (1, 3, 5)
    for dx, dy, horizontal, vertical in (
        (4, 0, "left", "center"), (-4, 0, "right", "center"), (0, 4, "center", "bottom"), (0, -4, "center", "top"),
        (3, 3, "left", "bottom"), (3, -3, "left", "top"), (-3, 3, "right", "bottom"), (-3, -3, "right", "top"),
    )
]  # fmt: skip
MARGIN = 0.08  # around the points of a part, as a share of its size
FAR = 8  # typographic points; a line connects a label that is farther away with its point
INCHES = 5.0
DOTS_PER_INCH = 200
CELL = 0.24  # inches, of a word's row or column
WORD_POINTS = 9  # size of letters
GAP = 0.12  # inches, around a picture and between words and cells
LINES = ("-", "--", ":")
HIDDEN = "\u200b"  # put before a label that begins with an underscore, which a legend would leave out


def picture(draw: Callable[..., Figure], *data: Any, kind: str = "svg") -> bytes:
    """Return a figure of this module as an SVG or PNG file. Equal data give equal bytes."""
    out = io.BytesIO()
    with mpl.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph ")  # letters that the font lacks become boxes
        metadata = {"Date": None} if kind == "svg" else {"Software": None}
        size: Any = {"bbox_inches": "tight", "pad_inches": GAP} if draw is alignment_figure else {}
        draw(*data).savefig(out, format=kind, dpi=DOTS_PER_INCH, metadata=metadata, **size)
    return out.getvalue()


def map_figure(map_: Map) -> Figure:
    """Draw the map and its enlarged parts."""
    columns = (len(map_.zooms) + 1) // 2
    figure = Figure((SIDE + columns * SIDE * 0.62, SIDE), dpi=MEASURED)
    grid = figure.add_gridspec(2, 1 + columns, width_ratios=[1, *[0.62] * columns], left=0.01, right=0.99, top=0.94,
                               bottom=0.01, wspace=0.03, hspace=0.1)  # fmt: skip
    axes = figure.add_subplot(grid[:, 0])
    _draw_whole(axes, map_)
    axes.set_title(f"{map_.title} ({len(map_.labels):,})", fontsize=9, color=GREY, parse_math=False)
    for number, zoom in enumerate(map_.zooms):
        axes = figure.add_subplot(grid[number % 2, 1 + number // 2])
        _draw_part(axes, map_, number)
        title = f"{number + 1}: {zoom.purity:.0%} of nearest neighbours are also the network's"
        axes.set_title(title, fontsize=9, color=COLOURS[number % len(COLOURS)])
    return figure


def map_part_figure(map_: Map, number: int | None = None) -> Figure:
    """Draw an enlarged part, counted from 0, or the whole map, small enough for a column of a report."""
    figure = Figure((PART_SIDE, PART_SIDE * 0.8), dpi=MEASURED)
    if number is None:
        axes = figure.add_axes((0.01, 0.01, 0.98, 0.94))  # a part's number may stand above the axes
        _draw_whole(axes, map_)
        axes.set_axis_off()
    else:
        _draw_part(figure.add_axes((0.01, 0.01, 0.98, 0.98)), map_, number)
    return figure


def _draw_whole(axes: Axes, map_: Map) -> None:
    """Draw all points, with frames around the enlarged parts."""
    _frame(axes, GREY)
    axes.scatter(map_.coordinates[:, 0], map_.coordinates[:, 1], s=5, c="#777777", linewidths=0)
    axes.margins(0.03)
    axes.set_aspect("equal", adjustable="datalim")  # only parts are stretched, to make room for labels
    for number, zoom in enumerate(map_.zooms):
        colour, ((left, low), (right, high)) = COLOURS[number % len(COLOURS)], _limits(map_, zoom)
        axes.add_patch(Rectangle((left, low), right - left, high - low, fill=False, color=colour, linewidth=1.2))
        style: Any = {"fontsize": 10, "weight": "bold", "color": colour, "ha": "right"}
        axes.annotate(str(number + 1), (left, high), xytext=(-2, 1), textcoords="offset points", **style)
    if len(map_.labels) <= FEW:
        axes.apply_aspect()
        _label(axes, map_, list(range(len(map_.labels))))


def _draw_part(axes: Axes, map_: Map, number: int) -> None:
    """Draw an enlarged part."""
    zoom, colour = map_.zooms[number], COLOURS[number % len(COLOURS)]
    (left, low), (right, high) = _limits(map_, zoom)
    _frame(axes, colour)
    x, y = map_.coordinates[zoom.points].T
    axes.scatter(x, y, s=9, c=colour, linewidths=0)
    axes.set_xlim(left, right)
    axes.set_ylim(low, high)
    _label(axes, map_, zoom.points)


def _limits(map_: Map, zoom: Zoom) -> tuple[Floats, Floats]:
    """Return the lowest and the highest corner of a part."""
    points = map_.coordinates[zoom.points]
    margin = np.maximum(MARGIN * np.ptp(points, axis=0), MARGIN / 4 * zoom.half)
    return points.min(axis=0) - margin, points.max(axis=0) + margin


def _frame(axes: Axes, colour: str) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    for edge in axes.spines.values():
        edge.set_color(colour)


def _label(axes: Axes, map_: Map, points: list[int]) -> None:
    """Write the labels of points where they cover no other label; leave out a label without such a place."""
    renderer = FigureCanvasAgg(axes.get_figure(root=True)).get_renderer()  # type: ignore[no-untyped-call]
    frame = axes.get_window_extent()
    dots = axes.transData.transform(map_.coordinates[points])
    taken = [Bbox.from_extents(x - 2 * DOTS, y - 2 * DOTS, x + 2 * DOTS, y + 2 * DOTS) for x, y in dots]
    line = {"arrowstyle": "-", "linewidth": 0.4, "color": "#999999", "shrinkA": 0, "shrinkB": 1}
    for i in points:
        text, at = shortened(map_.labels[i]), map_.coordinates[i]
        for dx, dy, horizontal, vertical in PLACES:
            far = max(abs(dx), abs(dy)) > FAR
            label = axes.annotate(text, at, xytext=(dx, dy), textcoords="offset points", fontsize=7, ha=horizontal,
                                  va=vertical, parse_math=False, arrowprops=line if far else None)  # fmt: skip
            label.update_positions(renderer)
            box = Text.get_window_extent(label, renderer).expanded(1.03, 1)  # other fonts may be wider
            is_inside = np.all(frame.min <= box.min) and np.all(box.max <= frame.max)
            if is_inside and not box.count_overlaps(taken):
                taken.append(box)
                break
            label.remove()


def shortened(label: str) -> str:
    """Replace Moses's escapes in a label, and cut it to `LONGEST` characters."""
    label = unescaped(label)
    return label if len(label) <= LONGEST else label[: LONGEST - 1] + "…"


def density_figure(scatter: Scatter) -> Figure:
    """Draw the density of pairs."""
    figure, axes = _axes_of_scores(scatter)
    if scatter.histogram.any():
        cells = np.ma.masked_equal(scatter.histogram.T[::-1, ::-1], 0)  # log p = 0 is at the right and at the top
        ends, most = (-BIN * CELLS, 0), max(int(cells.max()), 2)
        image = axes.imshow(
            cells,
            extent=(*ends, *ends),
            origin="lower",
            aspect="auto",
            norm=LogNorm(1, most),
            cmap="viridis_r",
            interpolation="nearest",
        )
        axes.set(xlim=scatter.limits[0], ylim=scatter.limits[1])
        figure.colorbar(image, label=f"pairs per {BIN:g} × {BIN:g} nats")
    return figure


def pairs_figure(scatter: Scatter) -> Figure:
    """Draw a sample of the pairs as points, as in the paper. Pairs seen once have another colour."""
    figure, axes = _axes_of_scores(scatter)
    kinds = {"seen more often": (COLOURS[1], ~scatter.is_single), "seen once": (COLOURS[0], scatter.is_single)}
    for name, (colour, own) in kinds.items():
        if own.any():
            x, y = scatter.points[own].T
            axes.scatter(x, y, s=5, color=colour, alpha=0.5, linewidths=0, label=name, rasterized=True)
    if len(scatter.points):
        axes.set(xlim=scatter.limits[0], ylim=scatter.limits[1])
        axes.legend(fontsize="small", markerscale=2, loc="lower left")
    return figure


def _axes_of_scores(scatter: Scatter) -> tuple[Figure, Axes]:
    figure = Figure((INCHES, INCHES), layout="constrained")
    axes = figure.add_subplot()
    axes.set_xlabel("log p(target | source) of the table, nats")
    axes.set_ylabel("log p(target | source) of the RNN, nats")
    pairs = scatter.groups[0]
    caption = [number_of(pairs.pairs, "pair")]
    if pairs.spearman is not None:
        caption.append(f"Spearman {pairs.spearman:.2f}")
    if pairs.at_floor:
        caption.append(f"{pairs.at_floor:,} at the RNN's floor not shown")
    axes.set_title(", ".join(caption), fontsize="small")
    return figure, axes


def training_figure(history: Sequence[tuple[float, float]]) -> Figure:
    """Plot nats per token by minutes of training."""
    figure = Figure((INCHES, INCHES * 0.75), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(*zip(*history, strict=True), "o-", color=COLOURS[1], markersize=3)
    axes.set_xlim(left=0)
    axes.set_xlabel("minutes of training")
    axes.set_ylabel("held-out nats per token")
    return figure


def gates_figure(name: str, means: Floats) -> Figure:
    """Draw a histogram of the units' mean gates."""
    figure = Figure((INCHES, INCHES * 0.5), layout="constrained")
    axes = figure.add_subplot()
    counts, edges = np.histogram(means, 10, (0, 1))
    bars = axes.bar(edges[:-1] + 0.05, counts, 0.09, color=COLOURS[1])
    axes.bar_label(bars, [f"{count:,}" if count else "" for count in counts], fontsize=8)
    axes.set(xlabel=name, ylabel="units", xlim=(0, 1))
    axes.margins(y=0.15)
    return figure


def alignment_figure(alignment: AlignmentMap) -> Figure:
    """Draw a heat map: the source across, the target down; white is 0, black is 1.

    Words that are ``<unk>`` to the network are grey. The figure is as large as its words need.

    Raises:
        InputError: a side has more than `MOST_CELLS` words.
    """
    most = max(alignment.alpha.shape)
    if most > MOST_CELLS:
        expected = f"at most {MOST_CELLS} words per side to draw, end symbols included"
        raise InputError(
            f"line {alignment.line}: expected {expected}, found {most}", advice="Without --output they are printed."
        )
    sides = [[shortened(readable(word)) for word in words] for words in (alignment.columns, alignment.rows)]
    figure = Figure((CELL * len(sides[0]), CELL * len(sides[1])))
    axes = figure.add_axes((0, 0, 1, 1))  # labels go outside
    axes.pcolormesh(alignment.alpha, cmap="Greys", vmin=0, vmax=1, edgecolors="#cccccc", linewidth=0.4)
    axes.invert_yaxis()
    axes.tick_params(length=0, pad=GAP * 72 / 2, labelsize=WORD_POINTS, top=True, labeltop=True, labelbottom=False)
    for axis, labels, words in zip((axes.xaxis, axes.yaxis), sides, (alignment.columns, alignment.rows), strict=True):
        axis.set_ticks(np.arange(len(labels)) + 0.5, labels, parse_math=False)
        for text, word in zip(axis.get_ticklabels(), words, strict=True):
            text.set_color("#888888" if word in alignment.unknown else "#000000")
    axes.tick_params(axis="x", labelrotation=90)
    axes.xaxis.set_label_position("top")
    axes.set(xlabel="source", ylabel="target")
    return figure


def lengths_figure(scores: LengthScores) -> Figure:
    """Plot BLEU over source length or rarity, with a curve for each system."""
    bins = [f"{title}\n{number_of(len(scores.parts[title]), 'sentence')}" for title in scores.bins]
    heights = {name: [np.nan if b is None else b for b in bleu[: len(bins)]] for name, bleu in scores.bleu.items()}
    figure, axes = _curves(heights, "o")
    axes.set_xticks(range(len(bins)), bins, fontsize=7)
    axes.set_xlim(-0.3, len(bins) - 0.7)
    axes.set_xlabel(scores.measure)
    axes.set_ylabel("BLEU")
    return figure


def gradients_figure(gradients: GradientNorms) -> Figure:
    """Plot the norm of gradients over the distance, with a curve for each network; norms of 0 are left out."""
    figure, axes = _curves({name: np.where(norms > 0, norms, np.nan) for name, norms in gradients.norms.items()}, ".")
    axes.set_yscale("log")
    axes.set_xlabel("k")
    axes.set_ylabel("mean norm of ∂L(t)/∂h'(t-k)")
    return figure


def _curves(heights: Mapping[str, Sequence[float] | Floats], marker: str) -> tuple[Figure, Axes]:
    figure = Figure((INCHES * 1.4, INCHES), layout="constrained")
    axes = figure.add_subplot()
    for number, (name, values) in enumerate(heights.items()):
        style, colour = LINES[number // len(COLOURS) % len(LINES)], COLOURS[number % len(COLOURS)]
        label = f"{HIDDEN if name.startswith('_') else ''}{readable(name)}"
        axes.plot(range(len(values)), values, style, marker=marker, color=colour, label=label)
    for text in axes.legend(fontsize="small").get_texts():
        text.set_parse_math(False)
    return figure, axes
