"""Weights of n-best lists, and the best hypotheses by them."""
