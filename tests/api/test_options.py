"""Device, precision and threads, as Python code names them."""

import torch

from moses_rnn.api.options import Options
from moses_rnn.native import native_core
from moses_rnn.producers.open import open_model


def test_a_device_may_be_torchs_own():
    assert Options.checked(torch.device("cpu"), "fp32", None) == Options("cpu", "fp32", None)


def test_the_native_core_scores_what_it_has(models):
    rnn, search = open_model(models / "rnn"), open_model(models / "search")
    options = Options("cpu", "fp32", None)
    assert options.scoring([rnn]).native == (native_core() is not None)
    assert not options.scoring([search]).native
    assert not options.scoring([rnn, rnn]).native
    assert not Options("cpu", "fp64", None).scoring([rnn]).native
