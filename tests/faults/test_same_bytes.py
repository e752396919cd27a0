"""Fault 40: workers and the point of resuming change no byte, also at the paper's size, where batches matter."""

import time

import pytest
import torch

from moses_rnn.models.open import open_model, save_model
from moses_rnn.networks.encdec import EncDec, EncDecConfig
from tests.commands import run, saved_lines, start
from tests.faults.conftest import FULL
from tests.networks.checkpoints import encdec_checkpoint

HIDDEN = 1000 if FULL else 64


@pytest.mark.timeout(6000)
def test_workers_and_resume_point_change_no_byte(folder):
    small = open_model(folder.path / "model")
    words = len(small.source_vocabulary), len(small.target_vocabulary)
    network = EncDec(EncDecConfig(*words, HIDDEN, 100, 50, 50), seed=1)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    save_model(folder.path / "large", encdec_checkpoint(network, small.source_vocabulary, small.target_vocabulary))
    lines = (folder.path / "t").read_bytes().splitlines(keepends=True)[:20_000]
    (folder.path / "t").write_bytes(b"".join(lines))
    options = ["t", "--model", "large", "--threads", "1", "-q"]
    made = {}
    for name, devices in (("one", "cpu"), ("two", "cpu,cpu"), ("three", "cpu,cpu,cpu")):
        run("score", *options, "-o", f"{name}.gz", "--device", devices, cwd=folder.path)
        made[name] = (folder.path / f"{name}.gz").read_bytes()
    for name in ("killed", "killed again"):
        process = start("score", *options, "-o", f"{name}.gz", cwd=folder.path)
        while process.poll() is None and not saved_lines(folder.path / f"{name}.gz"):
            time.sleep(0.002)
        process.kill()
        process.wait()
        resumed = ["-o", f"{name}.gz", "--resume", "--device", "cpu,cpu"]
        done = run("score", *options, *resumed, cwd=folder.path, check=False)
        assert done.returncode == 0 or "already exists" in done.stderr
        made[name] = (folder.path / f"{name}.gz").read_bytes()
    assert len(set(made.values())) == 1
