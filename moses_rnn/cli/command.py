"""What all commands share: errors and exit codes, stopping on signals, names of files, devices."""

from __future__ import annotations

import functools
import math
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, ParamSpec

import click

from moses_rnn.errors import MosesRnnError, Stopped
from moses_rnn.formats.streams import SUFFIXES

P = ParamSpec("P")
STOPPED = Stopped.exit_code
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class FiniteFloat(click.FloatRange):
    """A number within a range that is neither nan nor infinite."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert, and refuse what is no finite number."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


def reports_errors(command: Callable[P, None]) -> Callable[P, None]:
    """Turn this package's exceptions into one message on stderr and their exit code."""

    @functools.wraps(command)
    def reporting(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except MosesRnnError as error:
            say(f"{program()}: {error}" + (f"\n  {error.hint}" if error.hint else ""))
            sys.exit(error.exit_code)
        except BrokenPipeError:  # the reader of stdout went away; Python would complain once more at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)
        except OSError as error:
            say(f"{program()}: {error.filename or 'input or output'}: {error.strerror or error}")
            sys.exit(1)

    return reporting


def program() -> str:
    """The command's name as it was called."""
    return Path(sys.argv[0]).name


def say(text: str) -> None:
    """Print a line on stderr, whatever characters it has."""
    data = (text + "\n").encode(sys.stderr.encoding or "utf-8", "backslashreplace")
    click.echo(data, nl=False, err=True)


class StopRequest:
    """Becomes true at the first SIGINT, SIGTERM or SIGUSR1; the second one ends the process at once."""

    def __init__(self) -> None:
        self._requested = False
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, self._request)

    def _request(self, number: int, _frame: FrameType | None) -> None:
        if self._requested:
            os._exit(128 + number)
        self._requested = True
        say(f"{program()}: stopping after saving what is done (once more to stop at once)")

    def __call__(self) -> bool:
        """Whether a stop was asked for."""
        return self._requested


def without_compression_suffix(path: str) -> Path:
    """``phrase-table`` for ``phrase-table.gz``."""
    given = Path(path)
    return given.with_suffix("") if given.suffix in SUFFIXES else given


def default_model(table: str, *, inverse: bool = False) -> Path:
    """Where moses-rnn-train puts a table's model and moses-rnn-score looks for it: beside the table."""
    stem = without_compression_suffix(table)
    return stem.with_name(stem.name + (".rnn-inverse-model" if inverse else ".rnn-model"))


def default_output(table: str) -> str:
    """``phrase-table.rnn.gz`` for ``phrase-table.gz``."""
    stem = without_compression_suffix(table)
    return str(stem.with_name(stem.name + ".rnn.gz"))


def choose_device(wanted: str) -> str:
    """A torch device: "auto" is CUDA if there is one.

    Raises:
        MosesRnnError: a device was asked for that is not there.
    """
    import torch

    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if wanted.startswith("cuda") and not torch.cuda.is_available():
        raise MosesRnnError(f"--device {wanted}: expected a CUDA device, found none (--device cpu works everywhere)")
    try:
        torch.empty(0, device=wanted)
    except (RuntimeError, AssertionError) as error:
        raise MosesRnnError(f"--device {wanted}: expected cpu, cuda or cuda:N that torch can use here") from error
    return wanted


def choose_precision(wanted: str, device: str) -> str:
    """The precision of matrix products: "auto" is bf16 where a GPU computes in it, else fp32."""
    import torch

    if wanted != "auto":
        return wanted
    return "bf16" if device.startswith("cuda") and torch.cuda.is_bf16_supported(including_emulation=False) else "fp32"
