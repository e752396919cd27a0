"""Processes that die, fail and end with their driver."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from moses_rnn.errors import FormatError, MosesRnnError
from moses_rnn.pools.base import MOST_TRIES, in_order
from moses_rnn.pools.processes import ProcessPool, _Process
from tests.commands import ROOT
from tests.pools.jobs import Doubling, Dying, DyingMidAnswer, DyingOverEach, Failing, Unanswerable


def test_each_process_begins_its_job_once(tmp_path):
    with ProcessPool(Doubling(str(tmp_path), 0.01), ["a", "b"]) as pool:
        assert [result for _, result in in_order(range(30), pool, str)] == [2 * i for i in range(30)]
    assert sorted(file.read_text() for file in tmp_path.iterdir()) == ["a", "b"]


def test_what_a_killed_process_was_at_is_done_by_another(tmp_path):
    with ProcessPool(Dying(7, str(tmp_path)), ["a", "b"]) as pool:
        assert list(in_order(range(20), pool, str)) == [(i, 2 * i) for i in range(20)]
    assert (tmp_path / "died").exists()


def test_an_item_that_kills_every_process_is_named(tmp_path):
    with (
        ProcessPool(Dying(3, str(tmp_path), always=True), ["a"]) as pool,
        pytest.raises(MosesRnnError, match="item 3: expected a worker to finish it, found that 3 died over it"),
    ):
        list(in_order(range(9), pool, lambda item: f"item {item}"))


def test_deaths_over_other_items_do_not_count_for_those_that_wait(tmp_path):
    with ProcessPool(DyingOverEach(MOST_TRIES - 1, str(tmp_path)), ["a"]) as pool:
        assert list(in_order(range(4), pool, str)) == [(i, 2 * i) for i in range(4)]


@pytest.mark.timeout(60)
def test_a_process_that_dies_before_it_has_an_item_dies_over_its_first(monkeypatch):
    submit, killed, most = _Process.submit, [], MOST_TRIES - 1

    def late(process, item):
        if process not in killed and len(killed) < most:
            killed.append(process)
            process._process.kill()
            process._receiver.join()
        return submit(process, item)

    monkeypatch.setattr(_Process, "submit", late)
    with ProcessPool(Doubling(), ["a"]) as pool:
        assert list(in_order(range(3), pool, str)) == [(i, 2 * i) for i in range(3)]
    assert len(killed) == most
    most = 99
    with (
        ProcessPool(Doubling(), ["a"]) as pool,
        pytest.raises(MosesRnnError, match="0: .* found that 3 died over it .ProcessDied: process [0-9]+ was killed"),
    ):
        list(in_order(range(3), pool, str))


@pytest.mark.timeout(60)
def test_a_death_in_the_middle_of_an_answer_is_one(tmp_path):
    with ProcessPool(DyingMidAnswer(str(tmp_path)), ["a"]) as pool:
        assert list(in_order(range(3), pool, str)) == [(i, bytes([i]) * 1_000_000) for i in range(3)]
    assert (tmp_path / "died").exists()


@pytest.mark.timeout(60)
def test_items_that_nobody_will_read_keep_nobody_waiting(tmp_path):
    """They are more than a pipe holds, and their process died before it took them."""
    items = [bytes(1_000_000) for _ in range(4)]
    with (
        ProcessPool(Dying(items[0], str(tmp_path), always=True), ["a"]) as pool,
        pytest.raises(
            MosesRnnError, match="found that 3 died over it .ProcessDied: process [0-9]+ was killed by signal 9"
        ),
    ):
        list(in_order(items, pool, lambda _: "item"))
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("pool")]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("raises", [False, True])
def test_what_cannot_be_sent_back_is_named(raises):
    with ProcessPool(Unanswerable(raises), ["a"]) as pool, pytest.raises(Exception, match="Local|lambda"):
        list(in_order([1], pool, str))


@pytest.mark.timeout(60)
def test_what_cannot_be_sent_is_an_error_of_its_own_and_the_process_goes_on():
    with ProcessPool(Doubling(), ["a"]) as pool:
        answers = [pool.submit(item) for item in (1, lambda: 2, 3)]
        assert (answers[0].result(), answers[2].result()) == (2, 6)
        with pytest.raises(Exception, match="lambda"):
            answers[1].result()


def test_the_trace_of_an_error_in_a_process_comes_with_it():
    with ProcessPool(Doubling(), ["a"]) as pool, pytest.raises(TypeError) as raised:
        pool.submit(None).result()
    assert "jobs.py" in raised.value.__notes__[0]


@pytest.mark.parametrize("at", [None, 2])
def test_errors_come_back_as_they_were_raised(at):
    error = FormatError("t", 5, "this", "that", "Advice.")
    with ProcessPool(Failing(error, at), ["a"]) as pool, pytest.raises(FormatError) as raised:
        list(in_order(range(5), pool, str))
    assert str(raised.value) == "t:5: expected this, found that\n  Advice."
    assert (raised.value.name, raised.value.line, raised.value.exit_code) == ("t", 5, 3)


DRIVER = """
import os, sys
from moses_rnn.pools.processes import ProcessPool
from tests.pools.jobs import Doubling
if __name__ == "__main__":
    pool = ProcessPool(Doubling(sys.argv[1]), ["a", "b"])
    answers = [pool.submit(i).result() for i in range(8)] + [f.result() for f in [pool.submit(i) for i in range(8)]]
    print("ready", flush=True)
    os.read(0, 1)
"""


def test_processes_end_when_their_driver_is_killed(tmp_path):
    (tmp_path / "driver.py").write_text(DRIVER)
    (tmp_path / "pids").mkdir()
    driver = subprocess.Popen(
        [sys.executable, tmp_path / "driver.py", tmp_path / "pids"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with driver:
        assert driver.stdout.readline() == b"ready\n"
        pids = [int(file.name) for file in (tmp_path / "pids").iterdir()]
        driver.kill()
    assert pids
    deadline = time.monotonic() + 60
    while any(is_alive(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
