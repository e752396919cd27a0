import subprocess
import sys

import pytest

from moses_rnn.analysis import findings as module
from tests.cli.analyse.calls import invoke
from tests.commands import run

WITHOUT_PLOT = """\
import sys
sys.modules.update(matplotlib=None, sklearn=None)
from moses_rnn.cli.analyse import main
main()
"""


@pytest.fixture(autouse=True)
def few(monkeypatch):
    for name, count in {"SOURCES": 1, "SAMPLES": 3, "PHRASES": 20, "POINTS": 30}.items():
        monkeypatch.setattr(module, name, count)


@pytest.fixture(scope="module")
def scored(tmp_path_factory, table, model):
    path = tmp_path_factory.mktemp("scored") / "scored.gz"
    run("score", table, "--model", model, "-o", path, "--quiet")
    return path


@pytest.mark.parametrize("moment", ["yesterday", "nan", "1e99", "-5", "1_000", "2.5", "", "9" * 30])
def test_a_moment_that_is_none_is_refused_before_the_work(tmp_path, scored, model, monkeypatch, moment):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", moment)
    done = invoke("report", scored, "--model", model, "-o", tmp_path / "report.html", code=3)
    assert (
        f"SOURCE_DATE_EPOCH: expected a whole number of seconds since 1970, up to the year 9999, found '{moment}'"
        in done.stderr
    )
    assert not list(tmp_path.iterdir())


def test_without_the_extra_there_are_no_pictures(tmp_path, scored, model):
    page = tmp_path / "report.html"
    arguments = ["report", *map(str, [scored, "--model", model, "-o", page])]
    done = subprocess.run([sys.executable, "-c", WITHOUT_PLOT, *arguments], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"The report is in {page}.\n")
    missing = "matplotlib and scikit-learn not found: pip install 'moses-rnn[report]' for all pictures"
    assert done.stderr == f"warning: {missing}\n"
    text = page.read_text(encoding="utf-8")
    assert "data:image" not in text
    assert text.count("Pictures need matplotlib. Install it") > 3
    assert "words of part 1" in text  # of a map by PCA
