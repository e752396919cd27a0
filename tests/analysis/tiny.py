"""A tiny network with words, for the tests of this folder."""

import torch

from moses_rnn.networks.encdec import SWITCHES
from moses_rnn.networks.vocabulary import Vocabulary
from tests.networks.checkpoints import encdec_checkpoint
from tests.networks.networks import encdec_network

SOURCE_WORDS = [b"<unk>", b"</s>", b"a", b"b", b"c", b"d", b"e", b"f", b"g"]  # 9 and 8, as `encdec_network` has
TARGET_WORDS = [b"<unk>", b"</s>", b"u", b"v", b"w", b"x", b"y", b"z"]
VOCABULARIES = Vocabulary(SOURCE_WORDS), Vocabulary(TARGET_WORDS)


def checkpoint(variant="paper", *, direction="source-to-target", source_words=SOURCE_WORDS):
    model = encdec_network(SWITCHES[variant], dtype=torch.float32)
    return encdec_checkpoint(model, Vocabulary(source_words), Vocabulary(TARGET_WORDS), direction)
