"""Fault 29 of networks of sentences and language models: killed at any time, resumed, and the same in the end."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest
import torch
from safetensors.torch import load_file

from moses_rnn.training.model_folder import RANDOM
from tests.commands import settings
from tests.training.small import write_texts
from tests.translation.sentences import saved_model, sentences, text

KILLS = pytest.mark.parametrize("kills", [3, pytest.param(50, marks=pytest.mark.slow)])
TEXTS = ["--source", "src", "--target", "trg", "--dev", "dev", "--architecture", "seq2seq"]
SIZES = ["--hidden-size", "16", "--embedding-size", "8", "--threads", "1"]
COURSE = ["--max-minutes", "0", "--batch-size", "16", "-q"]
RARER = {"layers": 2, "precision": "fp32", "evaluate_every": 200, "patience": 99}
LONG = ["long", "-o", "out", "--n-best", "3", "list.gz", "--beam", "3", "--threads", "1", "-q"]


PARENT = """
import os, sys
import moses_rnn.cli.progress, moses_rnn.cli.training, moses_rnn.translation.run
import moses_rnn.training.train
from moses_rnn.cli.{program} import main
for line in sys.stdin:
    child = os.fork()
    if not child:
        try:
            main(line.split())
        except SystemExit as end:
            os._exit(end.code or 0)
        os._exit(1)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Commands:
    """Runs a command in a folder, each time as a process of its own that has its libraries already."""

    def __init__(self, folder, program="nmt"):
        self._messages = folder / "messages"
        with self._messages.open("wb") as messages:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": messages}
            self.parent = subprocess.Popen(
                [sys.executable, "-c", PARENT.format(program=program)], cwd=folder, text=True, bufsize=1, **pipes
            )

    def __call__(self, command, seconds=None):
        """The exit code; it is killed after some seconds. All its messages are asserted to be known."""
        print(*command, file=self.parent.stdin, flush=True)
        child = int(self.parent.stdout.readline())
        if seconds is not None:
            time.sleep(seconds)
            with contextlib.suppress(ProcessLookupError):  # it had ended
                os.kill(child, signal.SIGKILL)
        code = int(self.parent.stdout.readline())
        messages = self._messages.read_text()
        assert code in (0, -signal.SIGKILL) or (code == 1 and "already exists" in messages), messages
        return code


@pytest.fixture
def nmt(tmp_path):
    commands = Commands(tmp_path)
    with commands.parent:  # it ends with its input
        yield commands


def seconds_of(nmt, command):
    started = time.monotonic()
    assert nmt(command) == 0
    return time.monotonic() - started


def killed_until_done(nmt, kills, seconds, command, when_done):
    """Start a command again and again, killed at random times of a run of `seconds`, and afresh when it is done.

    Returns how many runs were done, the last one undisturbed.
    """
    draw, deaths, done = random.Random(4), 0, 0
    while deaths < kills:
        if nmt(command, draw.uniform(0.1, 0.6) * seconds) == -signal.SIGKILL:
            deaths += 1
        else:  # or its death came after its end
            when_done()
            done += 1
    nmt(command)
    when_done()
    return done + 1


def learned(folder):
    """The best weights, and all that a run would continue from."""
    best = load_file(next(folder.glob("*.safetensors")))
    state = load_file(folder / "training" / "state.safetensors")
    state.pop(RANDOM)  # of torch's own generator, which nothing draws from
    return {**best, **{f"state: {name}": tensor for name, tensor in state.items()}}


def comparison(folder):
    """What compares the model `m` with `whole`, and removes it."""
    expected = learned(folder / "whole")

    def compare():
        weights = learned(folder / "m")
        assert weights.keys() == expected.keys()
        assert all(torch.equal(weights[name], expected[name]) for name in expected)
        shutil.rmtree(folder / "m")

    return compare


@pytest.mark.release
@KILLS
@pytest.mark.parametrize("more", [{}, {"partition_words": 58, "reshuffle": True}], ids=["all words", "partitions"])
@pytest.mark.timeout(6000)
def test_training_killed_at_random_times_ends_with_the_same_weights(tmp_path, nmt, kills, more):
    letters = 60 if more else 12
    write_texts(tmp_path, "train", 400 if kills > 3 else 200, letters=letters)
    write_texts(tmp_path, "dev", 20, seed=1, letters=letters)
    command = ["train", "train", *TEXTS, *SIZES, *COURSE, *settings(tmp_path, **RARER, **more), "--max-epochs", "3"]
    seconds = seconds_of(nmt, [*command, "--model", "whole"])
    compare = comparison(tmp_path)
    ends = killed_until_done(nmt, kills, seconds, [*command, "--model", "m"], compare)
    print(f"{kills} kills within a training of {seconds:.1f} s, {ends} trainings ended, all with the same weights")


@KILLS
@pytest.mark.timeout(6000)
def test_translating_killed_at_random_times_ends_with_the_same_bytes(tmp_path, nmt, kills):
    saved_model(tmp_path / "model")
    (tmp_path / "long").write_bytes(text(sentences(3000, seed=7)))
    command = ["translate", *LONG, "--model", "model", "--resume"]
    seconds = seconds_of(nmt, command)
    expected = {name: (tmp_path / name).read_bytes() for name in ("out", "list.gz")}

    def compare():
        for name, content in expected.items():
            assert (tmp_path / name).read_bytes() == content
            (tmp_path / name).unlink()
        assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]

    compare()
    ends = killed_until_done(nmt, kills, seconds, command, compare)
    print(f"{kills} kills within a translation of {seconds:.1f} s, {ends} texts ended, all the same bytes")
