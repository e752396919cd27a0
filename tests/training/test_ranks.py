"""What ranks decide together, whatever they meet by; alone there is nothing to decide."""

import threading

from moses_rnn.errors import Stopped
from moses_rnn.training.ranks import ALONE
from tests.training.pretended_ranks import in_ranks


def test_alone_there_is_nobody_to_wait_for():
    assert (ALONE.sums([1.5, 2]), ALONE.any(True), ALONE.any(False), ALONE.of_first(0.5)) == (
        [1.5, 2],
        True,
        False,
        0.5,
    )
    assert ALONE.device("cuda:1") == "cuda:1"
    assert ALONE.report(Stopped("now"))


def test_machines_are_told_apart(monkeypatch, tmp_path):
    def boot():
        return threading.current_thread().name.encode()

    assert in_ranks(3, lambda ranks: ranks.are_on_one_machine()) == [True] * 3
    monkeypatch.setattr("moses_rnn.training.ranks._boot", boot)
    assert in_ranks(3, lambda ranks: ranks.are_on_one_machine()) == [False] * 3
    monkeypatch.undo()
    monkeypatch.setattr("moses_rnn.training.ranks.BOOT", tmp_path / "none")
    assert ALONE.are_on_one_machine()
