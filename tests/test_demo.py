"""The README's first command, and what the README shows of it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from moses_rnn.formats.phrase_forms import words
from moses_rnn.formats.phrase_table import parse_table
from tests.cli.scored import lines_of
from tests.commands import ROOT

LINE = b"in front of this ||| devant cette |||"


@pytest.mark.timeout(1200)
def test_the_demo_ends_with_a_converged_network_and_gives_the_readmes_line(tmp_path):
    venv = Path(sys.prefix)
    # the environment is taken as it is: nothing is installed into it
    command = ["make", "-o", venv / ".installed", f"VENV={venv}", "demo", f"DEMO={tmp_path}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert re.search(r"\nverdict: converged: ", done.stderr)
    assert "warning: RNN" not in done.stderr
    assert 'class="warning"' not in (tmp_path / "report.html").read_text()
    (shown,) = [line for line in (ROOT / "README.md").read_bytes().splitlines() if line.startswith(LINE)][1:]
    (made,) = [line for line in lines_of(tmp_path / "phrase-table.rnn.gz") if line.startswith(LINE)]
    readme, demo = (float(words(parsed.scores)[-1]) for parsed in parse_table([shown, made], "lines"))
    assert demo == pytest.approx(readme, rel=0.25)  # processors and threads differ in the last digits, training in more
