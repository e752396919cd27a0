"""Commands that train, as several processes that torchrun starts."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.commands import program

TORCHRUN = Path(sys.executable).with_name("torchrun")
BEFORE = 'echo $BASHPID > "pid.$RANK"; '  # so that a test can kill a rank; torchrun would make one $ of two


@contextlib.contextmanager
def started_ranks(command, *arguments, cwd, before="", processes=2, restarts=0):
    """torchrun, which has ended afterwards; `before` is what a shell does in each process before it is the command."""
    line = f'{BEFORE}{before}exec "$0" "$@"'
    launcher = [TORCHRUN, "--standalone", f"--nproc-per-node={processes}", f"--max-restarts={restarts}", "--no-python"]
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


def pid_of(rank, folder):
    """Of a process that `start_ranks` has started."""
    return int((folder / f"pid.{rank}").read_text())


def kill_rank(rank, folder):
    """As the system does when memory runs out."""
    os.kill(pid_of(rank, folder), signal.SIGKILL)
