"""moses-rnn pipeline: from a parallel corpus to the BLEU of several systems, by make."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import sysconfig
from pathlib import Path
from typing import Annotated

from moses_rnn.cli.command import command
from moses_rnn.errors import MosesRnnError
from moses_rnn.files.shipped import shipped_file
from moses_rnn.options import Argument, Option

EPILOG = """\b
Example: baseline and +RNN, tuned three times each, from data/train.en, data/train.fr, data/dev.en and so on:
  moses-rnn pipeline results MOSES_ROOT=/path/to/mosesdecoder SRC=en TRG=fr \\
      TRAIN=data/train DEV=data/dev TEST=data/test

The pipeline needs a built Moses, make and Perl, and reports what is missing before it runs anything. Results go to WORK
(default: work/). Run the same command again to continue a stopped run. Exit codes are those of make: 0 done, 2 a step
failed, something is missing or a value was refused.
"""


@command(EPILOG)
def main(
    words: Annotated[tuple[str, ...], Argument("[TARGET]... [VARIABLE=VALUE]...")] = (),
    *,
    dry_run: Annotated[bool, Option("Print the commands without running them", "-n --dry-run")] = False,
) -> None:
    """Build, tune and compare systems with a real Moses; without TARGET, list targets and variables."""
    make = shutil.which("make")
    if make is None:
        raise MosesRnnError("make: not found in PATH; the pipeline needs GNU make (the package `make` of Debian)")
    makefile = shipped_file("pipeline.mk")
    if len(str(makefile).split()) > 1:
        raise MosesRnnError(
            f"{makefile}: make cannot read files whose path contains blanks; install the package elsewhere"
        )
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python; a program would inherit that
        signal.signal(ignored, signal.SIG_DFL)
    programs = f"BIN={_commands_folder()}", f"BIN_PYTHON={sys.executable}"
    command = [make, "--file", str(makefile), *programs, *["--dry-run"] * dry_run, *words]
    os.execv(make, command)  # noqa: S606, no shell is wanted


def _commands_folder() -> Path:
    """Return the folder of this package's commands: this one's, or that of its Python's programs."""
    folders = [Path(sys.argv[0]).absolute().parent, Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))]
    return next((folder for folder in folders if (folder / "moses-rnn").is_file()), folders[1])
