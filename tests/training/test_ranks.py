"""What several processes say to each other, and what one learns of another's end."""

import json
import os
import socket
import subprocess
import sys

import pytest
import torch

from moses_rnn.errors import MosesRnnError, Stopped
from moses_rnn.training.ranks import ALONE, PeerFailed, Ranks, join

PROGRAM = """
import json, os, sys, torch
from moses_rnn.errors import MosesRnnError, Stopped
from moses_rnn.training.ranks import AllThreads, join
from moses_rnn.training.ranks import Threads

ranks, seen = join(), {}
seen["place"] = ranks.rank, ranks.size, ranks.leads
seen["sums"] = ranks.sums([1.0, 10.0 * ranks.rank])
seen["any"] = ranks.any(False), ranks.any(ranks.rank == 1)
tensor = torch.arange(3.0) + ranks.rank
ranks.add_up(tensor)
seen["add_up"] = tensor.tolist()
seen["each"] = AllThreads(Threads(), ranks).each(lambda item: (item / 3, float(ranks.rank)), range(5))
seen["device"] = ranks.device("cpu")
for wanted in ("cuda:0", "cuda"):
    try: ranks.device(wanted)
    except MosesRnnError as error: seen[wanted] = str(error)
if ranks.leads: ranks.announce("word", "given")
seen["word"] = ranks.wait_for("word", lambda: False)
try: ranks.wait_for("nothing", lambda: True)
except Stopped as error: seen["stopped"] = str(error)
ranks.compare({"seed": 1, "rate": 0.1, "names": ("a", "b")})
try:
    if ranks.leads: ranks.sums([1.0])
    else: raise MosesRnnError("no room")
except MosesRnnError as error:
    seen["report"] = ranks.report(error)
    seen["failure"] = str(error), error.exit_code
print(json.dumps(seen))
sys.stdout.flush()
os._exit(0)
"""


@pytest.fixture(scope="module")
def seen():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    place = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, **place, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    outputs = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    return [json.loads(output) for output, _ in outputs]


def test_numbers_are_added_up_and_decided_together(seen):
    assert [of_rank["place"] for of_rank in seen] == [[0, 2, True], [1, 2, False]]
    for of_rank in seen:
        assert of_rank["sums"] == [2.0, 10.0]
        assert of_rank["any"] == [False, True]
        assert of_rank["add_up"] == [1.0, 3.0, 5.0]
        assert of_rank["each"] == [[i / 3, float(i % 2)] for i in range(5)]


def test_words_arrive_and_waiting_can_be_stopped(seen):
    for of_rank in seen:
        assert of_rank["word"] == "given"
        assert of_rank["stopped"].startswith("stopped while the first process was reading")


def test_each_process_needs_a_gpu_of_its_own(seen):
    for of_rank in seen:
        assert of_rank["device"] == "cpu"
        assert of_rank["cuda:0"] == "--device cuda:0: expected cuda or cpu: each of 2 processes uses its own device"
        assert torch.cuda.device_count() or of_rank["cuda"].startswith("expected a GPU for each process, found 0 for ")


def test_one_that_failed_says_why_and_the_others_end(seen):
    assert seen[1]["failure"] == ["no room", 1]
    assert seen[1]["report"]
    message, code = seen[0]["failure"]
    assert message.startswith("process 0 of 2 has lost the other processes: ")
    assert (code, seen[0]["report"]) == (1, False)


def test_one_process_joins_nobody(monkeypatch):
    for size in (None, "1"):
        monkeypatch.setenv("RANK", "0")
        monkeypatch.setenv("WORLD_SIZE", size) if size else monkeypatch.delenv("WORLD_SIZE", raising=False)
        assert join() is ALONE


def test_variables_that_lack_an_address_are_refused(monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    with pytest.raises(
        MosesRnnError, match="process 1 of 2: cannot reach the other processes at .*MASTER_ADDR.*\n.*as torchrun does"
    ):
        join()


class Store(dict):
    """As much of torch's as is needed here."""

    def check(self, names):
        return all(name in self for name in names)

    def set(self, name, text):
        self[name] = text.encode()

    def get(self, name):
        return self[name]

    def compare_set(self, name, _nothing, text):
        return self.setdefault(name, text.encode())


def several(count, store):
    return [Ranks(store, rank, count, rank) for rank in range(count)]


def lost(ranks):
    """The error of a rank that finds another one gone."""
    with pytest.raises(PeerFailed) as raised, ranks._exchange():
        raise RuntimeError("[pair.cc:553] Connection closed by peer. Check the logs\nframe #1")
    return raised.value


def test_a_death_that_nobody_has_explained_is_said_once():
    first, second, third = several(3, Store())
    errors = lost(first), lost(second)
    assert str(errors[0]).startswith(
        "process 0 of 3 has lost the other processes: [pair.cc:553] Connection closed by peer\n  Was one of them killed?"
    )
    assert second.report(errors[1])
    assert not first.report(errors[0])
    assert not third.report(lost(third))
    assert not first.report(lost(first))
    assert first.report(MosesRnnError("something else"))
    assert not second.report(Stopped("as requested"))
