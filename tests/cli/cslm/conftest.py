"""A folder with texts, n-gram models and a trained CSLM."""

import contextlib
import gzip
import shutil

import pytest

from tests.cli.cslm.calls import TRAIN, cslm, sentences
from tests.scorers.tiny_lm import SMALL


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A folder with texts, n-gram models and a trained CSLM, and what its training said."""
    here = tmp_path_factory.mktemp("cslm")
    (here / "train.fr").write_text("".join(f"{line}\n" for line in sentences(200, 1)))
    (here / "dev.fr").write_text("".join(f"{line}\n" for line in sentences(20, 2)))
    (here / "sizes.toml").write_text("first_size = 6\nsecond_size = 5\n")
    (here / "lm.arpa.gz").write_bytes(gzip.compress(SMALL.arpa()))
    with contextlib.chdir(here):
        code, out, messages = cslm(*TRAIN)
    assert (code, out) == (0, "")
    (here / "said").write_text(messages)
    return here


@pytest.fixture
def here(prepared, tmp_path, monkeypatch):
    """A copy of it, in which commands are run."""
    shutil.copytree(prepared, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"
