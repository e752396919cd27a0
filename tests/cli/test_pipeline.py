"""moses-rnn pipeline: make on the file that comes with the package."""

import os
import re
import signal
from pathlib import Path

import pytest

from moses_rnn.cli.pipeline import main as pipeline_command
from tests.commands import run
from tests.pipeline import CONFIGS

COMMANDS = {
    "THREADS": "1; touch found",
    "WORK": "$(shell touch found)",
    "DEV": "dev$(x)",
    "TEST": "test ${shell touch found}",
    "SRC": "en'`touch found`'",
    "DECODER_FLAGS": "-v 0 $(shell touch found)",
    "LM_FLAGS": "-a\ntouch found",
    "TRAIN_FLAGS": "--quiet && touch found",
    "MY_OWN": "$(shell touch found)",
    "TRAIN": "one two",
    "MOSES_ROOT": "~/moses",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_no_value_is_a_command(tmp_path, name):
    """What make expands, a dry run expands too. A variable of no pipeline in the environment is somebody else's."""
    given = f"{name}={COMMANDS[name]}"
    environments = [None] if name == "MY_OWN" else [None, {**os.environ, name: COMMANDS[name]}]
    for environment in environments:
        for words in ([], ["--dry-run", "results"]):
            done = run(
                "pipeline", *words, *([] if environment else [given]), cwd=tmp_path, env=environment, check=False
            )
            assert (done.returncode, done.stdout) == (2, "")
            assert f"{given}: expected" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_folder_whose_name_is_a_command_is_no_place_to_work_in(tmp_path):
    folder = tmp_path / "a`>found`"
    folder.mkdir()
    assert run("pipeline", "results", cwd=folder, check=False).returncode == 2
    assert not list(folder.iterdir())


def test_the_help_has_every_variable_and_what_is_no_target_is_refused():
    shown = re.findall(r"^  ([A-Z_]+)=", run("pipeline").stdout, re.MULTILINE)
    declared = re.findall(r"^([A-Z_]+) \?=", (CONFIGS / "pipeline.mk").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(shown) == sorted(declared)
    assert run("pipeline", "nonsense", check=False).returncode == 2


def test_the_command_without_make(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    done = run("pipeline", "results", check=False)
    assert (done.returncode, done.stderr) == (
        1, "moses-rnn pipeline: make: not found in PATH; the pipeline needs GNU make (the package `make` of Debian)\n",
    )  # fmt: skip


def test_the_command_in_a_folder_that_make_cannot_name(monkeypatch, capsys):
    monkeypatch.setattr("moses_rnn.cli.pipeline.shipped_file", lambda name: Path("/my programs") / name)
    with pytest.raises(SystemExit) as leaving:
        pipeline_command.main(["results"])
    assert leaving.value.code == 1
    assert (
        "/my programs/pipeline.mk: make cannot read files whose path contains blanks; install"
        in capsys.readouterr().err
    )


def test_the_command_leaves_signals_as_programs_want_them():
    """Python ignores SIGPIPE, which zcat in `zcat | head` must not."""
    done = run("pipeline", "--", "--eval", "ignored: ; @grep SigIgn /proc/self/status", "ignored")
    assert int(done.stdout.split()[1], 16) & (1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1) == 0
