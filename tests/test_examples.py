import gzip
import hashlib
import math
import re
import subprocess
import sys

import pytest

from moses_rnn.moses.ini import MosesIni
from moses_rnn.table.phrase_table import parse_line
from tests.commands import ROOT
from tests.conftest import EXAMPLES


def test_the_corpus_is_what_its_script_makes(tmp_path):
    subprocess.run([sys.executable, EXAMPLES / "make_corpus.py", tmp_path], check=True)
    for language in ("en", "fr"):
        with gzip.open(EXAMPLES / "corpus" / f"train.{language}.gz") as shipped:
            assert shipped.read() == (tmp_path / f"train.{language}").read_bytes()
        for name in ("dev", "test"):
            assert (EXAMPLES / "corpus" / f"{name}.{language}").read_bytes() == (
                tmp_path / f"{name}.{language}"
            ).read_bytes()


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
