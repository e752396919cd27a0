"""The script of a first user, with the programs as they are here and from `pip install .`; `make dist` runs it with the wheel."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import ROOT


@pytest.mark.parametrize(
    "what",
    [
        pytest.param(Path(sys.executable).parent, marks=pytest.mark.slow, id="programs"),
        pytest.param(ROOT, marks=[pytest.mark.release, pytest.mark.timeout(1800)], id="clone"),  # pip needs the network
    ],
)
def test_the_script_of_a_first_user_ends(what):
    line = ["sh", ROOT / "tests" / "first_use.sh", what, ROOT / "examples" / "phrase-table.gz"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "all of it, with nothing of the source tree"
