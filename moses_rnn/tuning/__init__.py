"""Weights of n-best lists, and the best hypotheses by them."""

OPTIMISERS = ("mert", "kbmira")
RESTARTS = 20  # as mert-moses.pl asks of Moses's mert
