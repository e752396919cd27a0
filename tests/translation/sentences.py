"""A network whose translations differ, a folder that holds it, and sentences for it."""

import numpy as np
import torch

from moses_rnn.models.open import save_model
from moses_rnn.networks.encdec import SWITCHES
from moses_rnn.networks.vocabulary import END_ID, UNKNOWN_ID
from tests.models.pairs import SOURCE, TARGET
from tests.networks.checkpoints import encdec_checkpoint
from tests.networks.networks import encdec_network


def network(dtype=torch.float64):
    """An RNN Encoder-Decoder whose translations are neither all alike nor all empty."""
    model = encdec_network(SWITCHES["paper"], scale=2.0)
    with torch.no_grad():
        model.decoder.b_G[END_ID], model.decoder.b_G[UNKNOWN_ID] = -6.0, 0.5
    return model.to(dtype)


def saved_model(folder, **changes):
    changes.setdefault("provenance", {"unit": "sentences"})
    save_model(folder, encdec_checkpoint(network(torch.float32), SOURCE, TARGET, **changes))
    return folder


def sentences(count, seed=3):
    """Lines of some words, s9 among them, which is unknown; about one in forty is empty."""
    random = np.random.default_rng(seed)
    lengths = random.integers(0, 9, size=count)
    lengths[random.random(count) < 0.8] += 1
    return [b" ".join(b"s%d" % word for word in random.integers(2, 10, size=length)) for length in lengths]


def text(lines):
    return b"".join(line + b"\n" for line in lines)
