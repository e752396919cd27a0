"""The main job on a real table of 839 112 lines (`make test-slow`; the everyday tests take its first lines)."""

import gzip
import math
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from moses_rnn.moses.ini_editing import IniEdit, extend_ini
from moses_rnn.table.phrase_table import parse_table
from moses_rnn.table.phrases import words
from tests.cli.scored import without_last_scores
from tests.commands import run

SMALL = ["--hidden-size", "16", "--embedding-size", "16", "--shortlist", "2000", "--max-epochs", "0.2", "--quiet"]


@pytest.mark.parametrize("name", ["moses.ini", "moses.tuned.ini"])
def test_real_inis_change_in_two_lines(multi30k, name):
    data = (multi30k / name).read_bytes()
    new = extend_ini(IniEdit(ini=str(multi30k / name), table="new.gz"), "old.gz", 4, 1).content
    changed = [line for line, old in zip(new.split(b"\n"), data.split(b"\n"), strict=True) if line != old]
    assert [line.split(b" ")[0] for line in changed] == [b"PhraseDictionaryMemory", b"TranslationModel0="]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_whole_table(multi30k, tmp_path):
    table = multi30k / "phrase-table.gz"
    run("train", table, *SMALL, "--model", "m", cwd=tmp_path)
    command = Path(sys.executable).with_name("moses-rnn-score")
    subprocess.run([command, table, "--model", "m", "-o", "t.gz", "--quiet"], cwd=tmp_path, check=True)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"peak memory of any process of this test: {peak:,.0f} MiB")
    with gzip.open(table) as old, gzip.open(tmp_path / "t.gz") as new:
        lines = 0
        for before, parsed in zip(old, parse_table(new, "t.gz"), strict=True):
            (after,) = without_last_scores([parsed.line])
            value = float(words(parsed.scores)[-1])
            assert after == before
            assert math.isfinite(value)
            assert 0 < value <= 1
            lines += 1
    assert lines == 839_112
