"""moses-rnn pipeline: from a parallel corpus to the BLEU of several systems, by make."""

from __future__ import annotations

import os
import signal
from typing import Annotated

from moses_rnn.cli.command import command
from moses_rnn.moses.pipeline import make_command
from moses_rnn.options import Argument, Option

EPILOG = """\b
Example: baseline and +RNN, three tunings each, from data/train.en, data/train.fr, data/dev.en and so on:
  moses-rnn pipeline results MOSES_ROOT=/path/to/mosesdecoder SRC=en TRG=fr \\
      TRAIN=data/train DEV=data/dev TEST=data/test

It needs a built Moses, make and Perl, and says what is missing before anything runs. What is made goes to WORK (work/
if not given); a stopped run continues where it was when it is run again. Exit codes are those of make: 0 done, 2 a step
failed, something is missing or a value was refused.
"""


@command(EPILOG)
def main(
    words: Annotated[tuple[str, ...], Argument("[TARGET]... [VARIABLE=VALUE]...")] = (),
    *,
    dry_run: Annotated[bool, Option("Print the commands and run none", "-n --dry-run")] = False,
) -> None:
    """Build, tune and compare systems with a real Moses; without TARGET, list targets and variables."""
    _become(make_command([*["--dry-run"] * dry_run, *words]))


def _become(command: list[str]) -> None:
    """Go on as another program, so that signals and exit code are its own."""
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python; a program would inherit that
        signal.signal(ignored, signal.SIG_DFL)
    os.execv(command[0], command)  # noqa: S606, no shell is wanted
