"""A signature beside another table than the one that it describes: every command that would use it refuses it."""

import shutil

import pytest

import moses_rnn
from tests.analysis.scored import line, sign
from tests.cli.scored import INI
from tests.commands import run

TABLE = [line("a b", "x", 0.5, 0.25), line("a b", "y", 0.25, 0.5), line("c", "x", 1, 0.75)]
CHANGED = [*TABLE[:2], line("c", "x", 1, 0.65)]  # of the same length
COMMANDS = {  # on the table t, with the model m
    "extend": "extend t --text text --model m",
    "score": "score t --model m -o new --allow-misfit --again",
    "ini": "ini ini --table t -o new",
    "verify": "verify t --moses-ini scored.ini --no-decoder",
    "prune": "analyse prune t -o new --keep 0.5",
    "report": "analyse report t --model m -o new",
    "explain": "analyse explain t a|||x --model m",
    "summary": "analyse summary t",
}


@pytest.fixture
def changed(tmp_path, model):
    shutil.copytree(model, tmp_path / "m")
    (tmp_path / "text").write_text("a c\n")
    (tmp_path / "ini").write_text(INI.format(table="phrase-table.gz"))
    (tmp_path / "scored.ini").write_text(INI.format(table="t").replace("=4", "=5").replace("0= 0.2", "0= 0.2 0.2"))
    (tmp_path / "t").write_bytes(b"".join(TABLE))
    sign(tmp_path / "t", {4: "RNN"}, lines=3, columns=5)
    (tmp_path / "t").write_bytes(b"".join(CHANGED))
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_refuses_it(changed, command):
    before = {path.name for path in changed.iterdir()}
    done = run(*COMMANDS[command].split(), cwd=changed, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    assert "t: expected 92 bytes, SHA-256" in done.stderr
    assert "Make changes in the original table, and score it again." in done.stderr
    assert {path.name for path in changed.iterdir()} == before


def test_python_refuses_it(changed):
    with pytest.raises(moses_rnn.InputError, match="t: expected 92 bytes, SHA-256"):
        moses_rnn.read_table(changed / "t")
