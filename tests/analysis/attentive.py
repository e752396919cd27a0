"""A small RNNsearch and a deep LSTM with words, a folder of either, and lines for them."""

import torch

from moses_rnn.models.model import Model
from moses_rnn.models.open import save_model
from moses_rnn.networks.seq2seq import SEQ2SEQ
from tests.models.pairs import SOURCE, TARGET
from tests.networks.checkpoints import search_checkpoint
from tests.networks.networks import search_network, seq2seq_network

LINES = [b"s2 s3  s4\n", b"s5\n", b"\n", b"s9 s2 s8 s8 s3\n", b"s6 s6"]  # s9 is unknown, line 3 empty
TRANSLATIONS = [b"t2 t3\n", b"t4 t9\n", b"\n", b"\n", b"t7\n"]  # t9 is unknown


def search(folder=None, **changes):
    return search_checkpoint(search_network(dtype=torch.float32), SOURCE, TARGET, **changes)


def lstm(folder=None):
    model = seq2seq_network(dtype=torch.float32)
    return Model(SEQ2SEQ, model, {"source": SOURCE, "target": TARGET})


def save(folder, model):
    save_model(folder, model)
    return folder
