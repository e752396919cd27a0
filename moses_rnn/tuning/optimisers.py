"""The optimisers of weights by name, apart from what they do: --help lists them without loading a library."""

OPTIMISERS = ("mert", "kbmira")
RESTARTS = 20  # as mert-moses.pl asks of Moses's mert
