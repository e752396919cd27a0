"""Trainings by several processes under torchrun: what they learn, killed, stopped, failing, resumed by more or fewer."""

import contextlib
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.commands import BIN, ROOT, program, run, start
from tests.conftest import TINY

PHRASES = [
    "phrase-table.gz", *TINY, "--preset", "small", "--dropout", "0", "--batch-size", "16", "--learning-rate", "0.02",
    "--config", "course.toml", "--device", "cpu", "--threads", "1",
]  # fmt: skip
COURSE = "averaging = 0\ncool_down = 0\nevaluate_every = 80\npatience = 99\n"
ENOUGH = ["--max-epochs", "0.8"]  # more than 100 updates
TORCHRUN = Path(sys.executable).with_name("torchrun")
BEFORE = 'echo $BASHPID > "pid.$RANK"; '  # so that a test can kill a rank; torchrun would make one $ of two


@contextlib.contextmanager
def started_ranks(command, *arguments, cwd, before="", restarts=0):
    """torchrun with two processes, which has ended afterwards; `before` is what a shell does in each process before it is the command."""
    line = f'{BEFORE}{before}exec "$0" "$@"'
    launcher = [TORCHRUN, "--standalone", "--nproc-per-node=2", f"--max-restarts={restarts}", "--no-python"]
    name, *words = command.split()
    process = subprocess.Popen(
        [*launcher, "bash", "-c", line, *program(name), *words, *map(str, arguments)],
        cwd=cwd,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.communicate()


def run_ranks(command, *arguments, check=True, **options):
    """Run it to its end; its exit code and its messages, torchrun's own included."""
    with started_ranks(command, *arguments, **options) as process:
        _, messages = process.communicate(timeout=200)
    assert not check or process.returncode == 0, messages
    return process.returncode, messages


@pytest.mark.parametrize(
    ("name", "value", "limits"),
    [
        ("RANK", "first", "0 to 1"),
        ("RANK", "2", "0 to 1"),
        ("RANK", "", "0 to 1"),
        ("WORLD_SIZE", "two", "1 to 2147483647"),
        ("WORLD_SIZE", "0", "1 to 2147483647"),
        ("WORLD_SIZE", "", "1 to 2147483647"),
        ("LOCAL_RANK", "-1", "0 to 2147483647"),
        ("MASTER_PORT", "65536", "0 to 65535"),
        ("TORCHELASTIC_RESTART_COUNT", "once", "0 to 2147483647"),
    ],
)
def test_variables_that_are_no_numbers_are_refused(tmp_path, table, monkeypatch, name, value, limits):
    of_torchrun = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    for variable, given in {**of_torchrun, name: value}.items():
        monkeypatch.setenv(variable, given)
    done = run("train", table, "--model", tmp_path / "model", "--force", check=False)
    assert done.returncode == 3
    assert f"{name}: expected a whole number from {limits}, found '{value}'\n" in done.stderr
    assert not list(tmp_path.iterdir())


def kill_rank(rank, folder):
    os.kill(int((folder / f"pid.{rank}").read_text()), signal.SIGKILL)


@pytest.fixture(scope="module")
def here(tmp_path_factory, table):
    folder = tmp_path_factory.mktemp("ranks")
    shutil.copy(table, folder)
    (folder / "course.toml").write_text(COURSE)
    return folder


@pytest.fixture(scope="module")
def alone(here):
    run("train", *PHRASES, *ENOUGH, "--model", "alone", cwd=here)
    return here / "alone"


@pytest.fixture(scope="module")
def shared(here):
    """The same by two, and what they say."""
    _, messages = run_ranks("train", *PHRASES, *ENOUGH, "--model", "shared", cwd=here)
    return SimpleNamespace(folder=here / "shared", messages=messages)


def costs(folder):
    lines = (folder / "training" / "log.jsonl").read_text().splitlines()
    return [json.loads(line)["nats_per_token"] for line in lines]


def check_same_course(folder, expected, tolerance=1e-4):
    assert costs(folder) == pytest.approx(costs(expected), abs=tolerance)


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def wait_for_evaluations(folder, count, process):
    log = folder / "training" / "log.jsonl"
    while not (log.exists() and log.read_bytes().count(b"\n") >= count):
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)


def test_two_processes_learn_what_one_learns_and_the_first_speaks_for_all(alone, shared):
    assert len(costs(alone)) > 20
    assert costs(alone)[-1] < costs(alone)[0] - 0.5
    check_same_course(shared.folder, alone)
    for line in ("processes: 2, sharing each minibatch\n", "\nfinished: ", "\nverdict: ", "unigram baseline: "):
        assert shared.messages.count(line) == 1
    assert names(shared.folder) == names(alone)


@pytest.mark.release
def test_a_process_that_is_killed_is_started_again_and_the_training_continues(here, shared):
    options = [*PHRASES, *ENOUGH, "--model", "killed", "--force"]
    with started_ranks("train", *options, cwd=here, restarts=1) as process:
        wait_for_evaluations(here / "killed", 5, process)
        kill_rank(1, here)
        _, messages = process.communicate(timeout=200)
    assert process.returncode == 0, messages
    assert "process 0 of 2 has lost the other processes: " in messages
    assert "--force: ignored, because torchrun restarted this training (restart 1)\n" in messages
    assert "\nresuming after " in messages
    assert costs(here / "killed") == costs(shared.folder)
    same = [(here / folder / "model.safetensors").read_bytes() for folder in ("killed", "shared")]
    assert same[0] == same[1]
    assert names(here / "killed") == names(shared.folder)


@pytest.mark.release
def test_two_processes_continue_for_one_and_one_for_two(here, alone):
    options = [*PHRASES, *ENOUGH, "--model", "turns"]
    first = start("train", *options, cwd=here, stderr=subprocess.DEVNULL)
    wait_for_evaluations(here / "turns", 5, first)
    first.terminate()
    assert first.wait(60) == 75
    with started_ranks("train", *options, cwd=here) as process:
        wait_for_evaluations(here / "turns", len(costs(here / "turns")) + 5, process)
        process.terminate()
        _, messages = process.communicate(timeout=200)
    assert process.returncode != 0
    assert "\nresuming after " in messages
    assert messages.count("moses-rnn-train: stopping after saving what is done\n") == 1
    assert messages.count("run the same command again to continue\n") == 1
    assert len(costs(here / "turns")) < len(costs(alone))
    done = run("train", *options, cwd=here)
    assert "resuming after " in done.stderr
    check_same_course(here / "turns", alone)


@pytest.mark.parametrize(
    ("before", "message"),
    [
        pytest.param(
            'if [ "$RANK" = 1 ]; then set -- "$@" --seed 2; fi; ',
            "process 1 of 2: expected every process to train like the first one, found seed 2, not 1",
            id="a process that would do otherwise",
        ),
        pytest.param(
            'if [ "$RANK" = 0 ]; then ulimit -f 8; fi; ',
            "moses-rnn-train: failed/training/source.tokens: cannot be written: File too large",
            id="a disk that is full",
            marks=pytest.mark.release,
        ),
    ],
)
def test_what_fails_in_one_process_ends_all(here, before, message):
    code, messages = run_ranks("train", *PHRASES, *ENOUGH, "--model", "failed", cwd=here, before=before, check=False)
    assert code != 0
    assert messages.count(message) == 1
    assert messages.count("Traceback") <= 1  # torchrun's own
    shutil.rmtree(here / "failed", ignore_errors=True)


SRUN = """#!/bin/bash
# As Slurm's: as many tasks as the job has; a signal some time later, to all of them; the highest exit code.
export SLURM_NTASKS=2
for SLURM_PROCID in 0 1; do
    export SLURM_PROCID SLURM_LOCALID=$SLURM_PROCID
    "${@:2}" & tasks="$tasks $!"
done
until grep -qs . model/training/log.jsonl; do sleep 0.02; done
kill -USR1 $tasks
code=0
for task in $tasks; do wait $task; last=$?; [ $last -gt $code ] && code=$last; done
exit $code
"""
SCONTROL = """#!/bin/bash
case "$1" in show) echo 127.0.0.1; echo second;; *) echo "$@" >> scontrol.log;; esac
"""


def job_with_a_free_port():
    """The number of a job whose port, as train.sbatch chooses it, is free."""
    for port in range(10_000 + os.getpid() % 20_000, 30_000):
        with contextlib.suppress(OSError), socket.socket() as there:
            there.bind(("127.0.0.1", port))
            return port - 10_000
    pytest.fail("no port is free")


@pytest.mark.release
def test_a_slurm_job_whose_time_is_up_is_saved_and_put_back(here, tmp_path):
    shutil.copy(here / "phrase-table.gz", tmp_path)
    shutil.copy(here / "course.toml", tmp_path)
    for name, content in (("srun", SRUN), ("scontrol", SCONTROL)):
        (tmp_path / name).write_text(content)
        (tmp_path / name).chmod(stat.S_IRWXU)
    path = f"{tmp_path}:{BIN}:{os.environ['PATH']}"
    job = str(job_with_a_free_port())
    environment = {**os.environ, "PATH": path, "SLURM_JOB_ID": job, "SLURM_JOB_NODELIST": "first,second"}
    line = ["bash", ROOT / "examples" / "slurm" / "train.sbatch", *PHRASES, "--model", "model"]
    done = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 75, done.stderr
    assert "run the same command again to continue" in done.stderr
    assert (tmp_path / "scontrol.log").read_text() == f"requeue {job}\n"
    assert (tmp_path / "model" / "training" / "state.safetensors").exists()
    assert not list(tmp_path.rglob("*.npy"))
