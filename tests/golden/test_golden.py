"""Whole commands: exit code, output, messages and every file that they leave, compared with what is kept here.

commands.toml has the commands; expected/CHAIN/NAME.txt what came of each. `make golden` rewrites these files, and a diff
of them is the review of a change in behaviour.
"""

import difflib
import os

import pytest

from tests.golden.golden import CHAINS, ENVIRONMENT, HERE, run_chain, settled

REWRITE = os.environ.get("MOSES_RNN_GOLDEN") == "rewrite"
EXPECTED = HERE / "expected"


@pytest.mark.parametrize("chain", CHAINS)
def test_commands_leave_what_they_left(chain, tmp_path, monkeypatch):
    if chain == "n-grams":
        pytest.importorskip("kenlm")
    monkeypatch.delenv("MOSES_ROOT", raising=False)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    folder = tmp_path / "here"
    folder.mkdir()
    differences = []
    for name, result in run_chain(chain, folder):
        assert "Traceback" not in result, f"{chain}, {name}: {result}"
        path = EXPECTED / chain / f"{name}.txt"
        expected = path.read_text(encoding="utf-8") if path.exists() else ""
        found = settled(result, expected)
        if REWRITE:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(found, encoding="utf-8")
        elif found != expected:
            lines = expected.splitlines(keepends=True), found.splitlines(keepends=True)
            differences += difflib.unified_diff(*lines, f"{path.relative_to(HERE)}", "found", n=2)
    assert not differences, f"{''.join(differences)[:20000]}\nif this is as it should be: make golden"
