import gzip
import os
import random
import shutil

import pytest

from tests.commands import run

FULL = os.environ.get("MOSES_RNN_FAULTS") == "full"  # set by `make test-faults`; otherwise a taste of each


class Folder:
    """A table of several blocks with its model, and the output of an undisturbed run."""

    def __init__(self, path):
        self.path = path
        self.whole = (path / "whole.gz").read_bytes()

    def score(self, *arguments):
        """Run moses-rnn-score here in a process of its own; exit code and messages."""
        done = run("score", *arguments, cwd=self.path, check=False)
        return done.returncode, done.stderr

    def names(self):
        return {path.name for path in self.path.iterdir()}


@pytest.fixture(scope="session")
def prepared(tmp_path_factory, table, model):
    here = tmp_path_factory.mktemp("faults")
    shutil.copytree(model, here / "model")
    draw = random.Random(1)
    lines = gzip.decompress(table.read_bytes()).splitlines(keepends=True)
    (here / "t").write_bytes(b"".join(draw.choice(lines) for _ in range(30_000)))
    (here / "t.gz").write_bytes(gzip.compress((here / "t").read_bytes(), 1, mtime=0))
    run("score", "t.gz", "--model", "model", "-o", "whole.gz", "--threads", "1", "-q", cwd=here)
    return here


@pytest.fixture
def folder(prepared, tmp_path):
    shutil.copytree(prepared, tmp_path / "here", copy_function=shutil.copy2)
    return Folder(tmp_path / "here")
