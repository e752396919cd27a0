"""The commands: thin, and quick to answer --help (rooms that need torch are imported inside the command)."""

import os
import signal
import sys
from types import FrameType

PROGRAM = "moses-rnn"
INTERRUPTED = 128 + signal.SIGINT


def end_at_once(_number: int, _frame: FrameType | None) -> None:
    """Answer Ctrl-C while the program starts: nothing is begun yet, and Python would show or lose the interruption."""
    os._exit(INTERRUPTED)


def interrupt(number: int, frame: FrameType | None) -> None:
    """Answer Ctrl-C while a command runs; within an import as while the program starts."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            end_at_once(number, frame)
        frame = frame.f_back
    raise KeyboardInterrupt


# Before anything else is imported; not where another program imports the commands
if sys.argv[0].rpartition("/")[2].startswith(PROGRAM) and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, end_at_once)
