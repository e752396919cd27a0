"""A signature beside another table than the one that it describes: every command that would use it refuses it."""

import shutil

import pytest

import moses_rnn
from moses_rnn.errors import InputError
from tests.analysis.scored import line, sign
from tests.cli.scored import INI
from tests.commands import run

TABLE = [line("a b", "x", 0.5, 0.25), line("a b", "y", 0.25, 0.5), line("c", "x", 1, 0.75)]
CHANGES = {
    "a line less": TABLE[1:],
    "another score of the same length": [*TABLE[:2], line("c", "x", 1, 0.65)],
    "another order": [*TABLE[:2][::-1], TABLE[2]],
}
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
def changed(tmp_path, model, request):
    """A folder with a scored table that changed after it was scored."""
    shutil.copytree(model, tmp_path / "m")
    (tmp_path / "text").write_text("a c\n")
    (tmp_path / "ini").write_text(INI.format(table="phrase-table.gz"))
    (tmp_path / "scored.ini").write_text(INI.format(table="t").replace("=4", "=5").replace("0= 0.2", "0= 0.2 0.2"))
    (tmp_path / "t").write_bytes(b"".join(TABLE))
    sign(tmp_path / "t", {4: "RNN"}, lines=3, columns=5)
    (tmp_path / "t").write_bytes(b"".join(CHANGES[request.param]))
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("changed", ["another score of the same length"], indirect=True)
def test_every_command_refuses_it(changed, command):
    before = {path.name for path in changed.iterdir()}
    done = run(*COMMANDS[command].split(), cwd=changed, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    assert "t: expected 92 bytes, SHA-256" in done.stderr
    assert "Make changes in the original table, and score it again." in done.stderr
    assert {path.name for path in changed.iterdir()} == before


@pytest.mark.parametrize("changed", CHANGES, indirect=True)
def test_python_refuses_it_after_any_change(changed):
    with pytest.raises(InputError, match="t: expected 92 bytes, SHA-256"):
        moses_rnn.read_table(changed / "t")


@pytest.mark.parametrize("changed", ["a line less"], indirect=True)
def test_a_chosen_column_needs_no_signature(changed):
    run("analyse", "summary", "t", "--column", "4", cwd=changed)
    done = run("analyse", "prune", "t", "-o", "new", "--keep", "0.5", "--column", "4", cwd=changed)
    assert "Its signature is not copied." in done.stderr
