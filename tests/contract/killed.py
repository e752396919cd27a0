"""A training that is killed for good: in a process of its own, a fork of one that has its libraries already."""

import os
import signal
from pathlib import Path

import torch._dynamo  # noqa: F401, an optimiser imports it when it is made

from tests.contract.training import train
from tests.training.small import never


def train_until_killed(training, folder, model, renames):
    """Train, until about to rename a file for the n-th time: then the process is gone, as by kill -9."""
    left, replace = iter(range(renames)), Path.replace

    def die(path, target):
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        return replace(path, target)

    Path.replace = die
    train(training, folder, model, never)
