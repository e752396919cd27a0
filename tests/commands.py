"""The commands as processes."""

import atexit
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).parent.parent


BIN = Path(sys.executable).parent
PROGRAMS = {"train", "score"}  # of their own


def program(command):
    """The words that start a command; "" is the program that has them all."""
    if command in PROGRAMS:
        return [BIN / f"moses-rnn-{command}"]
    return [BIN / "moses-rnn", *command.split()]


def spoken(command):
    return f"moses-rnn-{command}" if command in PROGRAMS else f"moses-rnn {command}".rstrip()


def saved_lines(path):
    """How many lines of an output are safe while it is made."""
    state = path.with_name(f".{path.name}.state")
    found = re.search(rb'"counts": {.*?"lines": (\d+)', state.read_bytes() if state.exists() else b"")
    return int(found[1]) if found else 0


class Zygote:
    """Runs commands as processes of their own; see zygote.py."""

    def __init__(self):
        self._process = None
        self._folder = tempfile.TemporaryDirectory(prefix="moses-rnn-streams")

    def __call__(self, command, *arguments, cwd=None, given=b"", stdout=None):
        """Exit code, output (bytes; nothing if it goes to the file `stdout`) and messages (text)."""
        here = Path(self._folder.name)
        streams = here / "stdin", Path(stdout or here / "stdout"), here / "stderr"
        for path, content in zip(streams, (given, b"", b""), strict=True):
            path.write_bytes(content)
        line = [str(argument) for argument in (*program(command), *arguments)]
        code = self._ask(
            {
                "command": line,
                "folder": str(cwd or Path.cwd()),
                "streams": list(map(str, streams)),
                "environment": dict(os.environ),
            }
        )
        return SimpleNamespace(
            args=line,
            returncode=code,
            stdout=b"" if stdout else streams[1].read_bytes(),
            stderr=streams[2].read_text(encoding="utf-8", errors="replace"),
        )

    def _ask(self, request):
        if self._process is None:
            self._start()
        try:
            print(json.dumps(request), file=self._requests, flush=True)
            return int(self._answers.readline())
        except BaseException:  # a test that took too long, say: the next answer would be that of this one
            self.end()
            raise

    def _start(self):
        there, self._requests = _pipe()
        self._answers, back = _pipe()
        command = [sys.executable, str(ROOT / "tests" / "zygote.py"), str(there.fileno()), str(back.fileno())]
        descriptors = there.fileno(), back.fileno()
        self._process = subprocess.Popen(command, pass_fds=descriptors, cwd=ROOT, stdin=subprocess.DEVNULL)
        there.close()
        back.close()

    def end(self):
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._requests.close()
            self._answers.close()
            self._process = None


def _pipe():
    read, write = os.pipe()
    return os.fdopen(read), os.fdopen(write, "w")


zygote = Zygote()
atexit.register(zygote.end)


def start(command, *arguments, **options):
    """Start a command as a process that can be killed; `options` are those of `subprocess.Popen`."""
    return subprocess.Popen([*program(command), *map(str, arguments)], **options)


def kill_group(process):
    """Kill a process and all it started in its session; return when they hold no lock any more.

    A program that was just being started holds the locks of the process that starts it.
    """
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    while any(_is_alive(path, process.pid) for path in Path("/proc").glob("[0-9]*/stat")):
        pass


def _is_alive(path, group):
    try:
        state, _, its_group, *_ = path.read_text().rpartition(")")[2].split()
    except OSError:  # it is gone
        return False
    return int(its_group) == group and state not in "ZX"


def settings(folder, **values):
    """The words that give a command settings, in a file that is written into a folder."""
    path = Path(folder) / "settings.toml"
    path.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items()))
    return ["--config", str(path)]


def run(command, *arguments, check=True, cwd=None, given="", env=None):
    """Run a command as a process of its own; output and messages as text.

    With `env` it is the program itself that runs, otherwise a fork that has imported it already; see zygote.py.
    """
    if env is None:
        done = zygote(command, *arguments, cwd=cwd, given=given.encode())
        done.stdout = done.stdout.decode().replace("\r\n", "\n")
    else:
        line = [*program(command), *map(str, arguments)]
        done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=cwd, env=env, input=given)
    if check:
        assert done.returncode == 0, done.stderr
    return done


def make(*arguments):
    """Run make in the environment as it is: nothing is installed into it."""
    venv = Path(sys.prefix)
    command = ["make", "-o", venv / ".installed", f"VENV={venv}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done
