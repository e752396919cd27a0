"""What there is to choose from in an analysis; no library is loaded here, so that --help can show it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

CRITERIA = ("rnn", "direct", "both")  # by which pairs are pruned
METHODS = ("tsne", "pca")  # by which maps are laid out
NETWORKS = ("encoder", "decoder")  # whose gates are looked at


@dataclass(frozen=True, kw_only=True)
class ModelAndTable:
    """What the commands that look at a network and at a table have in common."""

    model: Path
    phrase_table: str
