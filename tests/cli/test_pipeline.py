"""moses-rnn-pipeline: make on the file that comes with the package."""

import signal
import sys
from pathlib import Path

import pytest

from moses_rnn.cli.pipeline import main as pipeline_command
from tests.commands import run
from tests.pipeline import CORPORA, make


def test_the_command_is_make_on_the_same_file(tmp_path):
    done = run("pipeline", "--dry-run", "results", "MOSES_ROOT=/nowhere", *CORPORA, cwd=tmp_path)
    expected = make(
        "--dry-run", "results", f"WORK={tmp_path}/work", "MOSES_ROOT=/nowhere", f"BIN_PYTHON={sys.executable}"
    )
    assert done.stdout == expected.stdout
    assert not list(tmp_path.iterdir())


def test_the_command_names_what_to_give(tmp_path):
    done = run("pipeline", "results", cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert "missing: MOSES_ROOT, the folder of a built Moses" in done.stderr
    for name in ("TRAIN", "DEV", "TEST"):
        assert (
            f"missing: {name}, the prefix of a corpus: {name}=data/x for data/x.en and data/x.fr, plain or .gz"
            in done.stderr
        )
    assert run("pipeline", "nonsense", check=False).returncode == 2
    assert "SYSTEM is one of: baseline rnn" in run("pipeline").stdout


def test_the_command_without_make(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    done = run("pipeline", "results", check=False)
    assert (done.returncode, done.stderr) == (
        1, "moses-rnn-pipeline: make: not found in PATH; the pipeline needs GNU make (the package `make` of Debian)\n",
    )  # fmt: skip


def test_the_command_in_a_folder_that_make_cannot_name(monkeypatch, capsys):
    monkeypatch.setattr("moses_rnn.moses.pipeline.shipped_file", lambda name: Path("/my programs") / name)
    with pytest.raises(SystemExit) as leaving:
        pipeline_command.main(["results"])
    assert leaving.value.code == 1
    assert "/my programs/pipeline.mk: make cannot read files whose path has blanks; install" in capsys.readouterr().err


def test_the_command_leaves_signals_as_programs_want_them():
    """Python ignores SIGPIPE, which zcat in `zcat | head` must not."""
    done = run("pipeline", "--", "--eval", "ignored: ; @grep SigIgn /proc/self/status", "ignored")
    assert int(done.stdout.split()[1], 16) & (1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1) == 0
