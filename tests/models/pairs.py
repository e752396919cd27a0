"""Phrase pairs, the vocabularies of their words, and a scorer of an RNN Encoder-Decoder that scores them."""

import numpy as np
import torch

from moses_rnn.networks.encdec import SWITCHES
from moses_rnn.networks.vocabulary import Vocabulary
from moses_rnn.table.table_blocks import Pairs
from tests.networks.checkpoints import encdec_checkpoint, make_scorer
from tests.networks.networks import encdec_network, weights_of

SOURCE = Vocabulary([b"<unk>", b"</s>", *(b"s%d" % i for i in range(2, 9))])
TARGET = Vocabulary([b"<unk>", b"</s>", *(b"t%d" % i for i in range(2, 8))])


def scorer(variant="paper", direction="source-to-target"):
    model = encdec_network(SWITCHES[variant], dtype=torch.float32)
    return make_scorer(encdec_checkpoint(model, SOURCE, TARGET, direction)), weights_of(model)


def of_pairs(scorer, pairs):
    return scorer.log_probs(Pairs.of(pairs))


def random_pairs(count, seed=5):
    """Pairs of words s0…s9 and t0…t9, of which some are outside the shortlists; sources repeat."""
    random = np.random.default_rng(seed)

    def phrase(letter):
        return b" ".join(b"%s%d" % (letter, i) for i in random.integers(0, 10, size=random.integers(0, 7)))

    sources = [phrase(b"s") for _ in range(count // 3)]
    return [(sources[random.integers(len(sources))], phrase(b"t")) for _ in range(count)]
