"""The same numbers on a CUDA device."""

import numpy as np
import pytest
import torch

from moses_rnn.models.checkpoint import load_checkpoint
from moses_rnn.models.encdec import SWITCHES
from tests.commands import run
from tests.conftest import LEARNED, TINY
from tests.models.checkpoints import encdec_checkpoint, make_producer
from tests.models.networks import encdec_network
from tests.producers.pairs import SOURCE, TARGET, of_pairs, random_pairs

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def cuda():
    if not torch.cuda.is_available():
        pytest.skip("torch finds no CUDA device")


@pytest.mark.parametrize("variant", SWITCHES)
def test_scores_are_those_of_the_cpu(variant):
    pairs = random_pairs(500)
    scores = [
        of_pairs(
            make_producer(
                encdec_checkpoint(encdec_network(SWITCHES[variant], dtype=torch.float32), SOURCE, TARGET), device
            ),
            pairs,
        )
        for device in ("cpu", "cuda")
    ]
    np.testing.assert_allclose(*scores, atol=1e-4)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_trains_and_scores(table, tmp_path, precision):
    model = tmp_path / "model"
    run("train", table, *TINY, "--model", model, "--device", "cuda", "--precision", precision, *LEARNED)
    assert load_checkpoint(model).provenance["device"] == "cuda"
    done = run("score", table, "--model", model, "--device", "cuda", "-o", tmp_path / "t.gz")
    assert "3,000 lines in and out" in done.stderr
