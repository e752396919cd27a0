"""The command line of make on the pipeline."""

import sys

from moses_rnn.files.shipped import shipped_file
from moses_rnn.moses import pipeline


def test_it_runs_the_shipped_makefile_with_the_commands_beside_this_one(tmp_path, monkeypatch):
    (tmp_path / "moses-rnn").touch()
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "moses-rnn analyse")])
    make, *words = pipeline.make_command(["results", "SRC=en"])
    assert make.endswith("make")
    assert words == [
        "--file", str(shipped_file("pipeline.mk")), f"BIN={tmp_path}", f"BIN_PYTHON={sys.executable}", "results", "SRC=en",
    ]  # fmt: skip
