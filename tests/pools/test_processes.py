"""Processes that die, fail and end with their driver."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from moses_rnn.errors import FormatError, MosesRnnError
from moses_rnn.pools.base import in_order
from moses_rnn.pools.processes import ProcessPool
from tests.commands import ROOT
from tests.pools.jobs import Doubling, Dying, Failing


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
