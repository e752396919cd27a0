"""Tune the weights of n-best lists, and choose the best hypotheses."""
