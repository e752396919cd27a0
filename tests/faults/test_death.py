"""Fault 29: killed at any time, resumed, and the same bytes in the end; also when it happens again and again.

Trainings are killed in tests/contract.
"""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from tests.commands import run, start
from tests.faults.conftest import FULL
from tests.translation.sentences import saved_model, sentences, text

COUNT = 50 if FULL else 4
COMMON = ["long", "--model", "model", "--threads", "1", "-q", "-o", "out.gz"]


def kill_until_done(here, command, made):
    """Kill a command at random times of its run, again and again, and compare the files that it made in the end."""
    started = time.monotonic()
    run(*command, cwd=here, env=dict(os.environ))
    seconds = time.monotonic() - started
    expected = taken(here, made)
    draw = random.Random(4)
    kills = ends = 0
    while kills < COUNT:
        process = start(*command, "--resume", cwd=here, stderr=subprocess.PIPE)
        try:
            _, messages = process.communicate(timeout=draw.uniform(0.3, 0.9) * seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            _, messages = process.communicate()
        if process.returncode == 0 or b"already exists" in messages:  # the one that was killed had done everything
            ends += 1
            assert taken(here, made) == expected
        else:
            assert process.returncode == -9
            assert not messages or (here / "out.gz").exists(), messages  # it warns when everything is written
            kills += 1
    done = run(*command, "--resume", cwd=here, check=False)
    assert done.returncode == 0 or "already exists" in done.stderr  # the last one, too
    assert taken(here, made) == expected
    assert not [path.name for path in here.iterdir() if path.name.startswith(".")]
    print(f"{kills} kills within a run of {seconds:.1f} s, {ends + 1} runs finished, all with the same bytes")


def taken(here, names):
    """The content of files, which are removed."""
    contents = {name: (here / name).read_bytes() for name in names}
    for name in names:
        (here / name).unlink()
    return contents


@pytest.mark.release
@pytest.mark.timeout(6000)
def test_killed_at_random_times_it_ends_with_the_same_bytes(folder):
    (folder.path / "long").write_bytes((folder.path / "t").read_bytes() * (6 if FULL else 3))
    kill_until_done(folder.path, ["score", *COMMON], ["out.gz", "out.gz.json"])


@pytest.mark.release
@pytest.mark.timeout(6000)
def test_translating_killed_at_random_times_ends_with_the_same_bytes(tmp_path):
    saved_model(tmp_path / "model")
    (tmp_path / "long").write_bytes(text(sentences(3000, seed=7)))
    command = ["nmt translate", *COMMON, "--n-best", "3", "list.gz", "--beam", "3"]
    kill_until_done(tmp_path, command, ["out.gz", "list.gz"])


KILLER = """
import os, signal, sys
from pathlib import Path
import moses_rnn.score.score
calls = iter(range(1, 1000))
def dying(original):
    def wrapped(*args, **kwargs):
        number = next(calls)
        if number == int(sys.argv[1]) and sys.argv[2] == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = original(*args, **kwargs)
        if number == int(sys.argv[1]):
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    return wrapped
Path.replace, Path.unlink, os.fsync = dying(Path.replace), dying(Path.unlink), dying(os.fsync)
from moses_rnn.cli.main import main
main(sys.argv[3:])
"""
INI = "[feature]\nPhraseDictionaryMemory name=T num-features=4 path=t.gz\n[weight]\nT= 1 1 1 1\n"


@pytest.mark.timeout(6000)
@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_around_every_rename_and_fsync_it_ends_with_the_same_files(folder, when):
    here = folder.path
    lines = (here / "t").read_bytes().splitlines(keepends=True)[:9000]
    (here / "t").write_bytes(b"".join([*lines[:500], b"bad\n", *lines[500:]]))
    (here / "ini").write_text(INI)
    options = ["t", "--model", "model", "-o", "out.gz", "--threads", "1", "--moses-ini", "ini", "--on-bad-line", "skip"]
    made = ("out.gz", "out.gz.json", "ini.rnn.ini", "out.gz.rejects")
    run("score", *options, "-q", cwd=here)
    expected = {name: (here / name).read_bytes() for name in made}
    for number in range(1, 60) if FULL else (3, 9, 14, 17):
        for name in made:
            (here / name).unlink()
        killer = [sys.executable, "-c", KILLER, str(number), when, "score", *options, "-q"]
        environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
        done = subprocess.run(killer, cwd=here, capture_output=True, env=environment, check=False)
        if done.returncode == 0:
            print(f"killed {when} {number - 1} calls")
            assert number > 8
            break
        assert done.returncode == -9, done.stderr
        for name in made:  # old or new, never a part
            assert not (here / name).exists() or (here / name).read_bytes() == expected[name]
        run("score", *options, "-q", "--resume", cwd=here)
        assert {name: (here / name).read_bytes() for name in made} == expected
        assert not [
            name for name in folder.names() if name.startswith(".") and name.endswith((".part", ".state", ".lock"))
        ]
