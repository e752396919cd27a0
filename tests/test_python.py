"""The package from Python: its public names and their types, and what its inner parts say of what is given wrongly."""

import ast
import re
import subprocess
import sys

import numpy as np
import pytest
import torch

import moses_rnn
from moses_rnn.errors import CheckpointError
from moses_rnn.networks.hardware import Compute
from moses_rnn.scorers.open import open_model
from moses_rnn.table.table_blocks import Pairs
from tests.commands import ROOT


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


USES = ROOT / "tests" / "api" / "every_public_name.py"


def test_a_users_code_has_types():
    """From the cache that `make lint` leaves, in a second."""
    command = [sys.executable, "-m", "mypy", "--strict", USES]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout
    assert (ROOT / "moses_rnn" / "py.typed").is_file()


def test_every_public_name_is_used_there_and_described():
    tree = ast.parse(USES.read_text(encoding="utf-8"))
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    used |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    described = set(re.findall(r"`(\w+)", (ROOT / "docs" / "api.md").read_text(encoding="utf-8")))
    assert set(moses_rnn.__all__) <= used & described
    for kind in (moses_rnn.Model, moses_rnn.LanguageModel, moses_rnn.Table):
        public = {name for name in vars(kind) if not name.startswith("_")}
        assert public <= used
