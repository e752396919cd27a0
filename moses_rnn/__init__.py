"""Neural features for phrase-based translation with Moses.

The score is the natural logarithm of p(target | source) under an RNN Encoder-Decoder (Cho et al., 2014). A package's
docstring says what its room is for; docs/architecture.md has the table of them.
"""

__version__ = "0.1.0"
