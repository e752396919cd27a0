"""Neural features for phrase-based translation with Moses.

Rooms: ``formats`` (what Moses reads and writes), ``models`` (the networks), ``training``, ``scoring``, ``analysis``
and ``cli``. The score is the natural logarithm of p(target | source) under an RNN Encoder-Decoder (Cho et al., 2014).
"""

__version__ = "0.1.0"
