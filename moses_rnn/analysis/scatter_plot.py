"""Figure 3 of the paper as a picture; needs matplotlib, which the extra ``plot`` brings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from moses_rnn.analysis.grids import as_csv
from moses_rnn.analysis.pictures import check_matplotlib, picture
from moses_rnn.analysis.scatter import Scatter, histogram_grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INCHES = 5.0
DOTS_PER_INCH = 200
OTHERWISE = "a .csv needs nothing"


def written(found: Scatter, kind: str) -> bytes:
    """The figure as a file of a kind: svg, png or csv; see `as_image` and `scatter.histogram_grid`."""
    return f"{as_csv(histogram_grid(found))}\n".encode() if kind == "csv" else as_image(found, kind)


def as_image(found: Scatter, kind: str) -> bytes:
    """The histogram as a picture; equal histograms give equal bytes.

    Args:
        found: the pairs.
        kind: svg or png.

    Raises:
        MosesRnnError: matplotlib is not installed.
    """
    check_matplotlib(OTHERWISE)
    return picture(lambda: _drawn(found), kind, dots_per_inch=DOTS_PER_INCH)


def _drawn(found: Scatter) -> Figure:
    from matplotlib.colors import LogNorm  # noqa: PLC0415, an extra
    from matplotlib.figure import Figure  # noqa: PLC0415, the same: and without pyplot, which looks for a screen

    figure = Figure(figsize=(INCHES, INCHES), layout="constrained")
    axes = figure.add_subplot()
    columns, rows = (int(np.flatnonzero(found.histogram.any(axis=axis)).max(initial=0)) + 1 for axis in (1, 0))
    cells = found.histogram[:columns, :rows].T[::-1, ::-1]  # 0 to the right and above
    low = -columns * found.bin_width, -rows * found.bin_width
    image = axes.imshow(
        np.ma.masked_equal(cells, 0),
        extent=(low[0], 0, low[1], 0),
        origin="lower",
        aspect="auto",
        norm=LogNorm(1, max(int(cells.max()), 2)),
        interpolation="nearest",
    )
    axes.set_xlabel("log p(target | source) of the table")
    axes.set_ylabel("log p(target | source) of the RNN")
    axes.set_title(_caption(found), fontsize="small")
    figure.colorbar(image, label="pairs")
    return figure


def _caption(found: Scatter) -> str:
    pairs = found.groups[0]
    parts = [f"{pairs.pairs:,} pairs"]
    if pairs.spearman is not None:
        parts.append(f"Spearman {pairs.spearman:.2f}")
    if pairs.at_floor:
        parts.append(f"{pairs.at_floor:,} at the RNN's floor not shown")
    return ", ".join(parts)
