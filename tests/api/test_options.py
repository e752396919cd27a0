"""Device, precision and threads, as Python code names them."""

import pytest
import torch

from moses_rnn.api.options import Options
from moses_rnn.errors import ArgumentError
from moses_rnn.native import SWITCH, native_core
from moses_rnn.producers.open import open_model


def test_a_device_may_be_torchs_own():
    assert Options.checked(torch.device("cpu"), "fp32", None) == Options("cpu", "fp32", None)


def test_threads_are_torchs_unless_given():
    assert Options("cpu", "fp32", None).threads_or_all == torch.get_num_threads()
    assert Options("cpu", "fp32", 3).threads_or_all == 3


def test_the_native_core_scores_what_it_has(models):
    rnn, search = open_model(models / "rnn"), open_model(models / "search")
    options = Options("cpu", "fp32", None)
    assert options.scoring([rnn]).native == (native_core() is not None)
    assert not options.scoring([search]).native
    assert not options.scoring([rnn, rnn]).native
    assert not Options("cpu", "fp64", None).scoring([rnn]).native


def test_what_is_the_native_cores_alone_is_refused_of_other_networks(models, monkeypatch):
    options = Options("cpu", "bf16x3", None)
    expected = (
        "precision: expected one of fp32, bf16, fp64 for what the native core does not compute, found 'bf16x3' for"
    )
    with pytest.raises(ArgumentError, match=f"{expected} RNNsearch on cpu, "):
        options.scoring([open_model(models / "search")])
    monkeypatch.setenv(SWITCH, "0")
    with pytest.raises(ArgumentError, match=f"{expected} RNN Encoder-Decoder on cpu, no native core"):
        options.scoring([open_model(models / "rnn")])


def test_a_network_writes_in_a_precision_that_torch_has(models):
    models = [open_model(models / "rnn")]
    assert Options("cpu", "fp64", None).writing(models).precision == "fp64"
    core = native_core()
    if core is not None and core.multiplies("bf16x3"):
        assert Options("cpu", "bf16x3", None).writing(models).precision == "fp32"
