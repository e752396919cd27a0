"""What the inner parts of the package say of what is given wrongly."""

import numpy as np
import pytest
import torch

from moses_rnn.errors import CheckpointError
from moses_rnn.networks.hardware import Compute
from moses_rnn.scorers.open import open_model
from moses_rnn.table.table_blocks import Pairs


def test_a_folder_may_be_text(model):
    scorer = open_model(str(model)).make_scorer(Compute(precision="fp64"))
    assert scorer.log_probs(Pairs([b"in front of"], [b"devant"])).shape == (1, 1)
    assert open_model(str(model)).direction == "source-to-target"
    with pytest.raises(CheckpointError, match="nowhere: expected a model folder, found nothing"):
        open_model("nowhere")


def test_phrases_are_bytes(model):
    scorer = open_model(model).make_scorer()
    with pytest.raises(
        TypeError, match="expected phrases as bytes, as a table has them, found str: encode them as UTF"
    ):
        scorer.log_probs(Pairs(["in front of"], ["devant"]))
    assert np.isfinite(scorer.log_probs(Pairs([b"in front of"], ["devant à".encode()]))).all()


def test_a_precision_and_a_device_are_known():
    with pytest.raises(ValueError, match="expected a precision of fp32, bf16, fp64, found 'fp16'"):
        Compute(precision="fp16")
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="expected a device that torch can use here, found 'cuda:1'"):
            Compute("cuda:1")
