"""Moses's own rescoring of n-best lists (scripts/nbest-rescore, Python 2 or 3) reads what we add and the weights we write."""

import gzip
import itertools
import subprocess
import sys

import pytest

from tests.cli.nbest.lists import NBEST, REFERENCE, SOURCE
from tests.commands import program, run
from tests.score.saved_models import save_models

pytestmark = pytest.mark.moses


@pytest.fixture(scope="module")
def scripts(moses_root):
    """Moses's scripts; skips where only its programs were installed."""
    folder = moses_root / "scripts" / "nbest-rescore"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there")
    return folder


def rescored(scripts, nbest, ini):
    """The best hypotheses by Moses's scripts, blanks at both ends stripped."""
    chosen = nbest
    for command in ([scripts / "rescore.py", ini], [scripts / "topbest.py"]):
        # They read text; Latin-1 lets all bytes through. `strip` takes more than blanks then: none such is in our lists.
        environment = {"PYTHONIOENCODING": "latin-1"}
        done = subprocess.run(
            [sys.executable, *command], input=chosen, capture_output=True, env=environment, check=True
        )
        assert done.stderr == b""
        chosen = done.stdout
    return chosen


def of_both(scripts, folder, source, reference, *options):
    """Best hypotheses by Moses and by us, of a list with our features and weights."""
    added = folder / "more"
    run("nbest add", folder / "n", "--source", source, *options, "-o", added, "--quiet")
    run("nbest", "tune", added, "--reference", reference, "--optimiser", "mert", "-o", folder / "ini")
    ours = subprocess.run([*program("nbest"), "rerank", added, folder / "ini"], capture_output=True, check=True)
    return rescored(scripts, added.read_bytes(), folder / "ini"), ours.stdout


def test_a_list_with_segmentations(scripts, tmp_path):
    models = save_models(tmp_path)
    for name, content in (("n", NBEST), ("src", SOURCE), ("ref", REFERENCE)):
        (tmp_path / name).write_bytes(content)
    options = ["--add", models / "cslm", "--add", models / "rnn", "--word-penalty", models / "rnn"]
    theirs, ours = of_both(scripts, tmp_path, tmp_path / "src", tmp_path / "ref", *options)
    assert ours == theirs == REFERENCE


def test_a_real_list(scripts, multi30k, tmp_path):
    models = save_models(tmp_path)
    with gzip.open(multi30k / "nbest.val.100.gz") as lines:
        listed = itertools.takewhile(lambda line: int(line.split(b" ", 1)[0]) < 20, lines)
        (tmp_path / "n").write_bytes(b"".join(listed))
    with gzip.open(multi30k / "val.fr.gz") as lines:
        (tmp_path / "ref").write_bytes(b"".join(itertools.islice(lines, 20)))
    theirs, ours = of_both(
        scripts, tmp_path, multi30k / "val.en.gz", tmp_path / "ref", "--add", models / "cslm", "--allow-misfit"
    )
    assert ours == theirs
    assert ours.count(b"\n") == 20
