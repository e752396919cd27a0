"""From a phrase table to a model folder: what is planned, what is read, what is left."""

import pytest
import torch

from moses_rnn.errors import Stopped
from moses_rnn.training.run import (
    estimate_training,
    plan_of,
    read_watched,
    threads_for,
)
from tests.training.small import never, phrase_request
from tests.training.texts import Listener


@pytest.fixture
def table(tmp_path):
    """A folder with a table of 60 lines."""
    lines = [b"s%d s%d ||| t%d ||| 0.5 ||| 0-0\n" % (i % 13, i % 5, i % 7) for i in range(60)]
    (tmp_path / "table").write_bytes(b"".join(lines))
    return tmp_path / "table"


def test_the_native_core_learns_unless_compiling_is_asked_for(monkeypatch):
    monkeypatch.setattr("moses_rnn.training.run.instructions_to_learn", lambda device, precision: "avx2")
    monkeypatch.setattr("moses_rnn.training.run.choose_compiled", lambda wanted, *_, **__: wanted is not False)
    for wanted, native, compiled in ((None, "avx2", False), (False, "avx2", False), (True, "", True)):
        training = plan_of(phrase_request("t", compiled=wanted)).training
        assert (training.native, training.compiled) == (native, compiled)
    monkeypatch.setattr("moses_rnn.training.run.instructions_to_learn", lambda device, precision: "")
    assert plan_of(phrase_request("t", compiled=None)).training.compiled


def test_a_gpu_shares_no_minibatch(monkeypatch):
    monkeypatch.setattr(torch, "set_num_threads", lambda count: None)
    assert threads_for(phrase_request("t", device="cuda", threads=8), 1000) == 1
    assert threads_for(phrase_request("t", threads=8), 128) == 2


def test_an_estimate_leaves_nothing(table, monkeypatch):
    monkeypatch.setattr("moses_rnn.training.estimate.LEAST_SECONDS", 0.0)
    before = sorted(table.parent.iterdir())
    assert estimate_training(phrase_request(table), Listener(), never).passes == 1
    assert sorted(table.parent.iterdir()) == before


def test_files_are_read_until_somebody_stops(table):
    listener, shares = Listener(), []
    listener.reading = lambda lines, share: shares.append((lines, share))
    paths = [str(table), str(table)]
    assert b"".join(read_watched(paths, listener, never)) == 2 * table.read_bytes()
    assert shares[-1][0] == 120
    with pytest.raises(Stopped, match="table; run the same command again to start"):
        list(read_watched(paths, listener, lambda: True))
