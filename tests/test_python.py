"""The package from Python, as docs/files.md shows it: what is given wrongly is named."""

import numpy as np
import pytest
import torch

from moses_rnn.errors import CheckpointError
from moses_rnn.models.checkpoint import load_checkpoint
from moses_rnn.producers.base import Compute
from moses_rnn.producers.open import open_model


def test_a_folder_may_be_text(model):
    producer = open_model(str(model)).make_producer(Compute(precision="fp64"))
    assert producer.log_probs([b"in front of"], [b"devant"]).shape == (1, 1)
    assert load_checkpoint(str(model)).direction == "source-to-target"
    with pytest.raises(CheckpointError, match="nowhere: expected a model folder, found nothing"):
        open_model("nowhere")


def test_phrases_are_bytes(model):
    producer = open_model(model).make_producer()
    with pytest.raises(
        TypeError, match="expected phrases as bytes, as a table has them, found str: encode them as UTF"
    ):
        producer.log_probs(["in front of"], ["devant"])
    assert np.isfinite(producer.log_probs([b"in front of"], ["devant à".encode()])).all()


def test_a_precision_and_a_device_are_known():
    with pytest.raises(ValueError, match="expected a precision of fp32, bf16, fp64, found 'fp16'"):
        Compute(precision="fp16")
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="expected a device that torch can use here, found 'cuda:1'"):
            Compute("cuda:1")
