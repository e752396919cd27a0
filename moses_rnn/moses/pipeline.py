"""The pipeline's make: the command that runs the makefile which comes with the package."""

from __future__ import annotations

import shutil
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from moses_rnn.errors import MosesRnnError
from moses_rnn.files.shipped import shipped_file


def make_command(words: Sequence[str]) -> list[str]:
    """The command line of make on the pipeline, with this package's programs.

    Args:
        words: flags, targets and variables.

    Raises:
        MosesRnnError: there is no make, or it cannot read the makefile where it is.
    """
    make = shutil.which("make")
    if make is None:
        raise MosesRnnError("make: not found in PATH; the pipeline needs GNU make (the package `make` of Debian)")
    makefile = shipped_file("pipeline.mk")
    if len(str(makefile).split()) > 1:
        raise MosesRnnError(f"{makefile}: make cannot read files whose path has blanks; install the package elsewhere")
    return [make, "--file", str(makefile), f"BIN={commands_folder()}", f"BIN_PYTHON={sys.executable}", *words]


def commands_folder() -> Path:
    """Where this package's commands are: beside this one, or where its Python has its programs."""
    folders = [Path(sys.argv[0]).absolute().parent, Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))]
    return next((folder for folder in folders if (folder / "moses-rnn").is_file()), folders[1])
