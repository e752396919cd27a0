"""Draw figures as files, in the only module that uses matplotlib.

The extra ``report`` brings it, and it is loaded only when something is drawn.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from moses_rnn.analysis.agreement import BIN, Scatter
from moses_rnn.analysis.agreement import BINS as CELLS
from moses_rnn.analysis.grids import readable, unescaped
from moses_rnn.analysis.lengths import BINS, LengthScores
from moses_rnn.analysis.scored_table import Floats
from moses_rnn.errors import InputError, MosesRnnError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

    from moses_rnn.analysis.alignment_maps import AlignmentMap
    from moses_rnn.analysis.maps import Map, Zoom

LIBRARIES = {"matplotlib": "matplotlib.figure", "scikit-learn": "sklearn.manifold"}  # of the extra ``report``
READ_BY_MATPLOTLIB = ("MPLBACKEND", "SOURCE_DATE_EPOCH")  # of the environment; nothing in a picture depends on either
STYLE: Any = {"svg.hashsalt": "moses-rnn", "svg.fonttype": "none", "font.family": "DejaVu Sans"}
SIDE = 7.0  # inches of the whole map
PART_SIDE = 4.2  # of a map or part in a column of a page, where its letters are as large as the text around it
PART_PLACE = (0.01, 0.01, 0.98, 0.91)
MEASURED = 288  # dots per inch: enough that the widths of labels are true at any size
DOTS = MEASURED / 72  # of a point
FEW = 60  # points that can all have their labels on the whole map
LONGEST = 44  # characters of a label
COLOURS = ("#c0392b", "#2471a3", "#1e8449", "#af601a", "#7d3c98", "#148f77")
# Where a label may stand: points away from its own point, and how it is aligned there. Near ones first.
PLACES = [
    (dx * away, dy * away, horizontal, vertical)
    for away in (1, 3, 5)
    for dx, dy, horizontal, vertical in (
        (4, 0, "left", "center"), (-4, 0, "right", "center"), (0, 4, "center", "bottom"), (0, -4, "center", "top"),
        (3, 3, "left", "bottom"), (3, -3, "left", "top"), (-3, 3, "right", "bottom"), (-3, -3, "right", "top"),
    )
]  # fmt: skip
MARGIN = 0.08  # around the points of a part
FAR = 8  # points, from where on a line leads from a label to its point
INCHES = 5.0
DOTS_PER_INCH = 200
CELL = 0.24  # inches of a word's row or column
MOST_CELLS = 120  # a side of a picture of words
WORD_POINTS = 9  # of letters
GAP = 0.12  # inches around a picture, and between words and cells
LINES = ("-", "--", ":")
HIDDEN = "\u200b"  # in front of a label that begins with an underscore, which a legend would leave out


def is_installed(library: str) -> bool:
    """Whether one of LIBRARIES can be imported."""
    try:
        with _undisturbed():
            importlib.import_module(LIBRARIES[library])
    except ImportError:
        return False
    return True


def missing_libraries() -> list[str]:
    """Return the libraries of the extra ``report`` that are not installed."""
    return [name for name in LIBRARIES if not is_installed(name)]


def check_matplotlib(otherwise: str) -> None:
    """Raise MosesRnnError if pictures cannot be drawn here, and say what can be written otherwise."""
    if not is_installed("matplotlib"):
        raise MosesRnnError(f"drawing needs matplotlib: pip install 'moses-rnn[report]' ({otherwise})")


def picture(draw: Callable[..., Figure], *data: Any, kind: str = "svg") -> bytes:
    """What one of the functions below draws of some data, as a file of one of PICTURES.

    Equal data give equal bytes.
    """
    import matplotlib as mpl  # noqa: PLC0415, an extra

    out = io.BytesIO()
    with _undisturbed(), mpl.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph ")  # a script that the font lacks is drawn as boxes
        metadata = {"Date": None} if kind == "svg" else {"Software": None}
        size: Any = {"bbox_inches": "tight", "pad_inches": GAP} if draw is alignment_figure else {}
        draw(*data).savefig(out, format=kind, dpi=DOTS_PER_INCH, metadata=metadata, **size)
    return out.getvalue()


def _figure(width: float, height: float, **options: Any) -> Figure:
    """Return an empty figure of this size in inches."""
    from matplotlib.figure import Figure  # noqa: PLC0415, an extra: and without pyplot, which looks for a screen

    return Figure(figsize=(width, height), **options)


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Hide what matplotlib reads from the environment, and fails at: Jupyter's backend need not be installed here."""
    hidden = {name: os.environ.pop(name) for name in READ_BY_MATPLOTLIB if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(hidden)


def map_figure(map_: Map) -> Figure:
    """The map and its enlarged parts as a picture."""
    columns = (len(map_.zooms) + 1) // 2
    figure = _figure(SIDE + columns * SIDE * 0.62, SIDE, dpi=MEASURED)
    grid = figure.add_gridspec(2, 1 + columns, width_ratios=[1, *[0.62] * columns], left=0.01, right=0.99, top=0.94,
                               bottom=0.01, wspace=0.03, hspace=0.1)  # fmt: skip
    _draw_whole(figure.add_subplot(grid[:, 0]), map_)
    for number in range(len(map_.zooms)):
        _draw_part(figure.add_subplot(grid[number % 2, 1 + number // 2]), map_, number)
    return figure


def map_part_figure(map_: Map, number: int | None = None) -> Figure:
    """One of the enlarged parts, from 0, or the map without them, small enough for a column of a page."""
    figure = _figure(PART_SIDE, PART_SIDE * 0.8, dpi=MEASURED)
    axes = figure.add_axes(PART_PLACE)
    if number is None:
        _draw_whole(axes, map_)
    else:
        _draw_part(axes, map_, number)
    return figure


def _draw_whole(axes: Axes, map_: Map) -> None:
    """All points, and frames around the parts that are enlarged elsewhere."""
    _bare(axes, f"{map_.title} ({len(map_.labels):,})", "#444444")
    axes.scatter(map_.coordinates[:, 0], map_.coordinates[:, 1], s=5, c="#777777", linewidths=0)
    axes.margins(0.03)
    axes.set_aspect("equal", adjustable="datalim")  # parts are stretched, which makes room for labels
    for number, zoom in enumerate(map_.zooms):
        _frame(axes, map_, zoom, number)
    if len(map_.labels) <= FEW:
        axes.apply_aspect()
        _label(axes, map_, list(range(len(map_.labels))))


def _limits(map_: Map, zoom: Zoom) -> tuple[Floats, Floats]:
    """The lowest and the highest corner of a part."""
    points = map_.coordinates[zoom.points]
    margin = np.maximum(MARGIN * np.ptp(points, axis=0), MARGIN / 4 * zoom.half)
    return points.min(axis=0) - margin, points.max(axis=0) + margin


def _bare(axes: Axes, title: str, colour: str) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_title(title, fontsize=9, color=colour, parse_math=False)
    for edge in axes.spines.values():
        edge.set_color(colour)


def _frame(axes: Axes, map_: Map, zoom: Zoom, number: int) -> None:
    from matplotlib.patches import Rectangle  # noqa: PLC0415, an extra

    colour, ((left, low), (right, high)) = COLOURS[number % len(COLOURS)], _limits(map_, zoom)
    axes.add_patch(Rectangle((left, low), right - left, high - low, fill=False, color=colour, linewidth=1.2))
    style: Any = {"fontsize": 10, "weight": "bold", "color": colour, "ha": "right"}
    axes.annotate(str(number + 1), (left, high), xytext=(-2, 1), textcoords="offset points", **style)


def _draw_part(axes: Axes, map_: Map, number: int) -> None:
    """A part, enlarged."""
    zoom, colour = map_.zooms[number], COLOURS[number % len(COLOURS)]
    (left, low), (right, high) = _limits(map_, zoom)
    _bare(axes, f"{number + 1}: {zoom.purity:.0%} of neighbours are the network's", colour)
    x, y = map_.coordinates[zoom.points].T
    axes.scatter(x, y, s=9, c=colour, linewidths=0)
    axes.set_xlim(left, right)
    axes.set_ylim(low, high)
    _label(axes, map_, zoom.points)


def _label(axes: Axes, map_: Map, points: list[int]) -> None:
    """Write the labels of points, each where it covers no other; one without such a place is left out."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415, an extra
    from matplotlib.transforms import Bbox  # noqa: PLC0415, an extra

    renderer = FigureCanvasAgg(axes.get_figure(root=True)).get_renderer()  # type: ignore[no-untyped-call]
    frame = axes.get_window_extent()
    dots = axes.transData.transform(map_.coordinates[points])
    taken = [Bbox.from_extents(x - 2 * DOTS, y - 2 * DOTS, x + 2 * DOTS, y + 2 * DOTS) for x, y in dots]
    text = axes.text(0.5, 0.5, "", transform=axes.transAxes, fontsize=7, parse_math=False)
    for i in points:
        text.set_text(shortened(map_.labels[i]))
        box = text.get_window_extent(renderer).expanded(1.03, 1)  # other fonts may be wider
        x, y = axes.transData.transform(map_.coordinates[i])
        place = next((p for p in PLACES if _fits(_moved(box, x, y, *p), frame, taken)), None)
        if place is not None:
            taken.append(_moved(box, x, y, *place))
            _write(axes, text.get_text(), map_.coordinates[i], place)
    text.remove()


def shortened(label: str) -> str:
    """A label as it is shown: without Moses's escapes, and no longer than `LONGEST`."""
    label = unescaped(label)
    return label if len(label) <= LONGEST else label[: LONGEST - 1] + "…"


def _moved(box: Bbox, x: float, y: float, dx: float, dy: float, horizontal: str, vertical: str) -> Bbox:
    """A label's box where it stands beside the point x, y."""
    from matplotlib.transforms import Bbox  # noqa: PLC0415, an extra

    left = x + dx * DOTS - box.width * {"left": 0, "center": 0.5, "right": 1}[horizontal]
    low = y + dy * DOTS - box.height * {"bottom": 0, "center": 0.5, "top": 1}[vertical]
    return Bbox.from_bounds(left, low, box.width, box.height)


def _fits(box: Bbox, frame: Bbox, taken: list[Bbox]) -> bool:
    inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
    return inside and not box.count_overlaps(taken)


def _write(axes: Axes, text: str, at: Any, place: tuple[float, float, str, str]) -> None:
    dx, dy, horizontal, vertical = place
    line = {"arrowstyle": "-", "linewidth": 0.4, "color": "#999999", "shrinkA": 0, "shrinkB": 1}
    axes.annotate(text, at, xytext=(dx, dy), textcoords="offset points", fontsize=7, ha=horizontal, va=vertical,
                  parse_math=False, arrowprops=line if max(abs(dx), abs(dy)) > FAR else None)  # fmt: skip


def density_figure(scatter: Scatter) -> Figure:
    """Draw the density of pairs."""
    from matplotlib.colors import LogNorm  # noqa: PLC0415, an extra

    figure, axes = _axes_of_scores(scatter)
    if scatter.histogram.any():
        cells = np.ma.masked_equal(scatter.histogram.T[::-1, ::-1], 0)  # 0 to the right and above
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
        figure.colorbar(image, label=f"pairs in each {BIN:g} × {BIN:g} nats")
    return figure


def pairs_figure(scatter: Scatter) -> Figure:
    """A sample of the pairs as points, as in the paper; those that were seen once are marked."""
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
    figure = _figure(INCHES, INCHES, layout="constrained")
    axes = figure.add_subplot()
    axes.set_xlabel("log p(target | source) of the table, nats")
    axes.set_ylabel("log p(target | source) of the RNN, nats")
    axes.set_title(_caption(scatter), fontsize="small")
    return figure, axes


def _caption(scatter: Scatter) -> str:
    pairs = scatter.groups[0]
    parts = [f"{pairs.pairs:,} pairs"]
    if pairs.spearman is not None:
        parts.append(f"Spearman {pairs.spearman:.2f}")
    if pairs.at_floor:
        parts.append(f"{pairs.at_floor:,} at the RNN's floor not shown")
    return ", ".join(parts)


def training_figure(history: Sequence[tuple[float, float]], unigram: float | None) -> Figure:
    """Plot nats per token by minutes of training, and the cost of a unigram model."""
    figure = _figure(INCHES, INCHES * 0.6, layout="constrained")
    axes = figure.add_subplot()
    axes.plot(*zip(*history, strict=True), "o-", color=COLOURS[1], markersize=3)
    if unigram is not None:
        axes.axhline(unigram, color="#777777", linestyle="--", linewidth=1, label="words by their frequency alone")
        axes.legend(fontsize="small")
    axes.set_xlim(left=0)
    axes.set_xlabel("minutes of training")
    axes.set_ylabel("held-out nats per token")
    return figure


def gates_figure(name: str, means: Floats) -> Figure:
    """Draw histograms of the units' mean gates."""
    figure = _figure(INCHES, INCHES * 0.5, layout="constrained")
    axes = figure.add_subplot()
    counts, edges = np.histogram(means, 10, (0, 1))
    bars = axes.bar(edges[:-1] + 0.05, counts, 0.09, color=COLOURS[1])
    axes.bar_label(bars, [f"{count:,}" * bool(count) for count in counts], fontsize=8)
    axes.set(xlabel=name, ylabel="units", xlim=(0, 1))
    axes.margins(y=0.15)
    return figure


def alignment_figure(alignment: AlignmentMap) -> Figure:
    """A heat map: the source across, the target down, the darker the more a word looked there; white is 0, black 1.

    Words that are ``<unk>`` to the network are grey. It is as large as its words need.

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
    figure = _figure(*(CELL * len(words) for words in sides))
    axes = figure.add_axes((0, 0, 1, 1))  # labels stand around it
    axes.pcolormesh(alignment.alpha, cmap="Greys", vmin=0, vmax=1, edgecolors="#cccccc", linewidth=0.4)
    axes.invert_yaxis()
    axes.tick_params(length=0, pad=GAP * 72 / 2, labelsize=WORD_POINTS, top=True, labeltop=True, labelbottom=False)
    for axis, labels, words in zip((axes.xaxis, axes.yaxis), sides, (alignment.columns, alignment.rows), strict=True):
        axis.set_ticks(np.arange(len(labels)) + 0.5, labels, parse_math=False)
        for text, word in zip(axis.get_ticklabels(), words, strict=True):
            text.set_color("#888888" if word in alignment.unknown else "#000000")
    axes.tick_params(axis="x", labelrotation=90)
    return figure


def lengths_figure(scores: LengthScores) -> Figure:
    """Plot BLEU over source length, with a curve for each system."""
    figure = _figure(INCHES * 1.4, INCHES, layout="constrained")
    axes = figure.add_subplot()
    bins = [f"{title}\n{len(scores.parts[title]):,} sentences" for title in BINS]
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
    axes.set_xticks(range(len(bins)), bins, fontsize=7)
    axes.set_xlim(-0.3, len(bins) - 0.7)
    axes.set_xlabel("words of the source")
    axes.set_ylabel("BLEU")
    for text in axes.legend(fontsize="small").get_texts():
        text.set_parse_math(False)
    return figure
