"""The pipeline as make runs it, on the example corpus."""

import subprocess
import sys
from pathlib import Path

from tests.commands import ROOT
from tests.conftest import EXAMPLES

BIN = Path(sys.executable).parent
CONFIGS = ROOT / "moses_configs"
CORPORA = [f"{name.upper()}={EXAMPLES / 'corpus' / name}" for name in ("train", "dev", "test")]


def make(*arguments, check=True, makefile=CONFIGS / "pipeline.mk"):
    """Run make on the pipeline alone, with the programs that are there: it knows of no installation."""
    command = ["make", "-f", makefile, f"BIN={BIN}", *CORPORA, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert not check or done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    return done
