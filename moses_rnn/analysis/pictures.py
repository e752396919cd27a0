"""Figures as files, by matplotlib, which the extra ``plot`` brings and which is loaded only when something is drawn."""

from __future__ import annotations

import importlib
import io
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from moses_rnn.errors import MosesRnnError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("svg", "png")
LIBRARIES = {"matplotlib": "matplotlib.figure", "scikit-learn": "sklearn.manifold"}  # of the extra ``plot``
STYLE: Any = {"svg.hashsalt": "moses-rnn", "svg.fonttype": "none", "font.family": "DejaVu Sans"}


def missing_libraries() -> list[str]:
    """Of the extra ``plot``: those that are not installed."""
    return [name for name in LIBRARIES if not _is_there(name)]


def check_matplotlib(otherwise: str = ".csv and .json need nothing") -> None:
    """Raise MosesRnnError if pictures cannot be drawn here: better before a long pass than after it.

    Args:
        otherwise: what the message says can be written without.
    """
    if not _is_there("matplotlib"):
        raise MosesRnnError(f"drawing needs matplotlib: pip install 'moses-rnn[plot]' ({otherwise})")


def picture(draw: Callable[[], Figure], kind: str, *, dots_per_inch: int) -> bytes:
    """A figure as a file of one of KINDS; equal figures give equal bytes.

    Args:
        draw: makes the figure, in our style.
        kind: one of KINDS.
        dots_per_inch: of a png.
    """
    import matplotlib as mpl  # noqa: PLC0415, an extra

    out = io.BytesIO()
    with mpl.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph ")  # a script that the font lacks is drawn as boxes
        metadata = {"Date": None} if kind == "svg" else {"Software": None}
        draw().savefig(out, format=kind, dpi=dots_per_inch, metadata=metadata)
    return out.getvalue()


def _is_there(library: str) -> bool:
    try:
        importlib.import_module(LIBRARIES[library])
    except ImportError:
        return False
    return True
