"""moses-rnn-pipeline: from a parallel corpus to the BLEU of several systems, by make."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import sysconfig
from pathlib import Path

import click

from moses_rnn.cli.command import CONTEXT, Program, reports_errors, shows_version
from moses_rnn.errors import MosesRnnError
from moses_rnn.files.shipped import shipped_file

EPILOG = """\b
Example: baseline and +RNN, three tunings each, from data/train.en, data/train.fr, data/dev.en and so on:
  moses-rnn-pipeline results MOSES_ROOT=/path/to/mosesdecoder SRC=en TRG=fr \\
      TRAIN=data/train DEV=data/dev TEST=data/test

It needs a built Moses, make and Perl, and says what is missing before anything runs. What is made goes to WORK (work/
if not given); a stopped run continues where it was when it is run again. Exit codes are those of make: 0 done, 2 a step
failed.
"""


@click.command(cls=Program, context_settings=CONTEXT, epilog=EPILOG)
@click.argument("words", nargs=-1, metavar="[TARGET]... [VARIABLE=VALUE]...")
@click.option("-n", "--dry-run", is_flag=True, help="Print the commands and run none")
@shows_version
@reports_errors
def main(words: tuple[str, ...], dry_run: bool) -> None:
    """Build, tune and compare systems with a real Moses; without TARGET, list targets and variables."""
    make = shutil.which("make")
    if make is None:
        raise MosesRnnError("make: not found in PATH; the pipeline needs GNU make (the package `make` of Debian)")
    makefile = shipped_file("pipeline.mk")
    if len(str(makefile).split()) > 1:
        raise MosesRnnError(f"{makefile}: make cannot read files whose path has blanks; install the package elsewhere")
    flags = ["--dry-run"] if dry_run else []
    programs = [f"BIN={_folder_of_commands()}", f"BIN_PYTHON={sys.executable}"]
    _become(make, ["--file", str(makefile), *flags, *programs, *words])


def _folder_of_commands() -> Path:
    """Where this package's other commands are: beside this one, or where its Python has its programs."""
    folders = [Path(sys.argv[0]).absolute().parent, Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))]
    return next((folder for folder in folders if (folder / "moses-rnn-score").is_file()), folders[1])


def _become(program: str, arguments: list[str]) -> None:
    """Go on as another program, so that signals and exit code are its own."""
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python; a program would inherit that
        signal.signal(ignored, signal.SIG_DFL)
    os.execv(program, [program, *arguments])  # noqa: S606, no shell is wanted
