"""n-best lists: add features, tune their weights, and choose the best hypotheses."""
