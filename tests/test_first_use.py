"""The script of a first user, which `make dist` runs with the wheel alone."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import ROOT


@pytest.mark.slow
def test_the_script_of_a_first_user_ends():
    script, table = ROOT / "tests" / "first_use.sh", ROOT / "examples" / "phrase-table.gz"
    line = ["sh", script, Path(sys.executable).parent, table]
    done = subprocess.run(line, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "all of it, in an environment with the wheel alone"
