import gzip
import math
import re
import subprocess
import sys

import pytest

from moses_rnn.formats.moses_ini import MosesIni
from moses_rnn.formats.phrase_table import parse_line, parse_table
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


def test_the_table_and_its_ini_fit():
    with gzip.open(EXAMPLES / "phrase-table.gz") as lines:
        table = list(parse_table(lines, "phrase-table.gz"))
    assert len(table) > 50_000
    feature = MosesIni((EXAMPLES / "moses.ini").read_bytes(), "moses.ini").choose()
    assert feature.options["num-features"] == "4"
    assert (EXAMPLES / feature.options["path"]).exists()


def test_the_readmes_line_is_one_of_the_table():
    """First as it is, then with one more number."""
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
    feature_line, weight_line = ini.lines_of("TranslationModel0")
    assert f"num-features={columns} " in feature_line
    assert len(weight_line.split()) == 1 + columns
