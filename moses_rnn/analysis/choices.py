"""What there is to choose from in an analysis; no library is loaded here, so that --help can show it."""

from __future__ import annotations

CRITERIA = ("rnn", "direct", "both")  # by which pairs are pruned
METHODS = ("tsne", "pca")  # by which maps are laid out
