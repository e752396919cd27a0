"""Progress: plain lines now and then, a bar on a terminal, nothing at all when quiet."""

import os
import pty
import subprocess
import sys
import termios
from types import SimpleNamespace

import pytest

from moses_rnn.cli import progress
from moses_rnn.cli.progress import Display

ON_A_TERMINAL = """
from moses_rnn.cli.progress import Display
display = Display("lines")
display.show(250, 0.25, "a note")
display.print_err("held out: 3.25")
display._bar and display._bar.refresh()
display.close()
"""


@pytest.fixture
def clock(monkeypatch):
    now = SimpleNamespace(seconds=1000.0)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now.seconds))
    return now


def shown(display, clock, capsys, seconds, *arguments):
    clock.seconds = 1000.0 + seconds
    display.show(*arguments)
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ((4000, 0.25, "epoch 1"), "4,000 lines (25%, 0:02:00 left), 100/s, epoch 1\n"),
        ((4000, None, "epoch 1"), "4,000 lines, 100/s, epoch 1\n"),
        ((4000, 1.0), "4,000 lines (100%, 0:00:00 left), 100/s\n"),
        ((0, 0.0), "0 lines, 0/s\n"),
    ],
)
def test_piped_it_is_lines(clock, capsys, arguments, line):
    assert shown(Display("lines"), clock, capsys, 40, *arguments) == line


def test_a_line_comes_every_half_minute(clock, capsys):
    display = Display("lines")
    times = [seconds for seconds in range(0, 120, 10) if shown(display, clock, capsys, seconds, 100)]
    assert times == [40, 80]  # the first after more than 30 seconds, the next after more than 30 more


def test_quiet_it_is_nothing(clock, capsys):
    display = Display("lines", quiet=True)
    assert shown(display, clock, capsys, 3600, 100, 0.5) == ""
    display.print_err("held out: 3.25")
    display.close()
    assert capsys.readouterr() == ("", "")


def test_on_a_terminal_it_is_a_bar_with_lines_above_it():
    mine, its = pty.openpty()
    termios.tcsetwinsize(its, (24, 100))
    command = [sys.executable, "-c", ON_A_TERMINAL]
    done = subprocess.run(command, stderr=its, stdout=subprocess.PIPE, check=True)
    os.write(its, b"the end")  # so that there is something to read
    sent = b""
    while not sent.endswith(b"the end"):
        sent += os.read(mine, 1 << 16)
    os.close(its)
    os.close(mine)
    assert done.stdout == b""
    sent = sent.decode()
    assert "25%|" in sent
    assert "250/1.00k" in sent
    assert "a note" in sent
    assert "held out: 3.25\r\n" in sent
    assert sent.rindex("25%|") > sent.index("held out")
