import gzip
import hashlib
import math
import re
import subprocess
import sys

import pytest

from moses_rnn.moses.ini import MosesIni
from moses_rnn.table.phrase_table import parse_line
from tests.commands import ROOT, run
from tests.conftest import EXAMPLES
from tests.networks.saved import saved_search


def test_the_corpus_is_what_its_script_makes(tmp_path):
    subprocess.run([sys.executable, EXAMPLES / "make_corpus.py", tmp_path], check=True)
    for language in ("en", "fr"):
        with gzip.open(EXAMPLES / "corpus" / f"train.{language}.gz") as shipped:
            assert shipped.read() == (tmp_path / f"train.{language}").read_bytes()
        for name in ("dev", "test"):
            assert (EXAMPLES / "corpus" / f"{name}.{language}").read_bytes() == (
                tmp_path / f"{name}.{language}"
            ).read_bytes()


def test_lists_are_scored_by_their_segments(tmp_path):
    saved_search(tmp_path / "model")
    (tmp_path / "source").write_text("a b\nb")
    (tmp_path / "nbest").write_text(
        "0 ||| été  ||| LM0= -1 ||| -1\n0 ||| été x ||| LM0= -2 ||| -2\n1 ||| x ||| LM0= -1 ||| -1 ||| 0=0\n"
    )
    command = [sys.executable, EXAMPLES / "score_segmented.py", "nbest", "--source", "source", "--model", "model"]
    subprocess.run([*command, "--segment", "cat", "-o", "own.gz"], check=True, cwd=tmp_path)
    options = ["--source", "source", "--add", "model", "--whole", "--allow-misfit", "-o", "more"]
    run("nbest add", "nbest", *options, cwd=tmp_path)
    own = gzip.decompress((tmp_path / "own.gz").read_bytes()).decode().split("\n")
    for line, expected in zip(own, (tmp_path / "more").read_text().split("\n"), strict=True):
        a, b = (re.split("(?:SUBWORDS|SEARCH)0= ([^ ]+)", one) for one in (line, expected))
        assert (a[::2], list(map(float, a[1:2]))) == (b[::2], pytest.approx(list(map(float, b[1:2])), abs=1e-5))
    again = ["own.gz" if word == "nbest" else word for word in command]
    subprocess.run([*again, "--segment", "cat", "-o", "twice.gz"], check=True, cwd=tmp_path)
    (tmp_path / "reference").write_text("t2\n" * 2)
    run("nbest", "tune", "twice.gz", "--reference", "reference", "-o", "weights", cwd=tmp_path)
    assert re.findall("SUBWORDS[0-9]+", (tmp_path / "weights").read_text()) == ["SUBWORDS0", "SUBWORDS1"]
    done = subprocess.run(
        [*command, "--segment", "head -n 1", "-o", "lost.gz"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (1, "head -n 1: expected 2 lines, found 1\n")
    assert not (tmp_path / "lost.gz").exists()
    done = subprocess.run(
        [*command, "--segment", "cat", "-o", "own.gz"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (1, "own.gz exists already\n")


def hard_corpus(folder, *options):
    script = [sys.executable, EXAMPLES / "make_hard_corpus.py", folder, "--sentences", "300", "--held-out", "100"]
    subprocess.run([*script, *options], check=True)
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.iterdir())}


def test_the_harder_corpus_is_the_same_again_and_has_slips_in_its_training_translations_alone(tmp_path):
    careful, careless = hard_corpus(tmp_path / "0", "--slips", "0"), hard_corpus(tmp_path / "3")
    assert {name for name in careful if careful[name] != careless[name]} == {"train.fr"}
    digest = hashlib.sha256("".join([*careful.values(), *careless.values()]).encode())
    assert digest.hexdigest()[:16] == "ef84fa4ec930d9d5"


def test_the_readmes_line_is_one_of_the_table():
    before, after = [
        line for line in (ROOT / "README.md").read_text().split("\n") if line.startswith("in front of this |||")
    ]
    with gzip.open(EXAMPLES / "phrase-table.gz", "rt", encoding="utf-8") as table:
        assert before + "\n" in set(table)
    parsed = parse_line(after.encode(), "README.md", 1)
    scores = parsed.scores.rpartition(b" ")[0]
    assert after.replace(parsed.scores.decode(), scores.decode()) == before
    (shown,) = re.findall(r"# array\(\[(\S+)\]\)", (ROOT / "README.md").read_text())
    assert float(shown) == pytest.approx(math.log(float(parsed.scores.split()[-1])), abs=0.01)


@pytest.mark.parametrize(("template", "columns"), [("baseline", 4), ("rnn", 5), ("rnn-wp", 6)])
def test_the_templates_declare_their_columns(template, columns):
    ini = MosesIni((ROOT / "moses_configs" / f"{template}.ini").read_bytes(), template)
    assert len(ini.weights(ini.choose())) == columns
