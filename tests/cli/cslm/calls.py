"""moses-rnn cslm on a text made here; within this process, as importing torch takes seconds."""

import contextlib
import io
import random
import signal
import sys

import pytest

from moses_rnn.cli.cslm import main
from tests.scorers.tiny_lm import NBSP

TINY = ["--config", "sizes.toml", "--order", "3", "--embedding-size", "4", "--shortlist", "6"]
TRAIN = ["train", "train.fr", "--model", "cslm", *TINY, "--max-epochs", "2", "--preset", "small", "--device", "cpu"]


def sentences(count, seed):
    """Six frequent words, and rare ones."""
    draw = random.Random(seed)
    frequent = ["le", "chat", "la", "bête", "dort", NBSP]
    return [" ".join([*draw.choices(frequent, k=draw.randrange(4)), f"rare{draw.randrange(9)}"]) for _ in range(count)]


def cslm(*arguments):
    """Run the command: exit code, stdout, stderr. Signals mean afterwards what they meant before."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)]
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)}
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(streams[0]),
        contextlib.redirect_stderr(streams[1]),
    ):
        patch.setattr(sys, "argv", ["moses-rnn cslm", *arguments])
        with pytest.raises(SystemExit) as leaving:
            main(list(arguments))
    for number, handler in handlers.items():
        signal.signal(number, handler)
    return leaving.value.code, *(stream.buffer.getvalue().decode() for stream in streams)


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
