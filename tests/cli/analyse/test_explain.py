"""moses-rnn analyse explain."""

import gzip
import itertools
import json

import pytest

from tests.cli.analyse.calls import invoke
from tests.commands import run


@pytest.fixture
def scored(tmp_path, table, model):
    path = tmp_path / "scored.gz"
    run("score", table, "--model", model, "-o", path, "--quiet")
    return path


def test_explain(tmp_path, table, model, scored):
    ini = tmp_path / "tuned.ini"
    ini.write_text(
        f"[feature]\nPhraseDictionaryMemory name=T num-features=5 path={scored} table-limit=2\n"
        "[weight]\nT= 0.1 0.1 0.3 0.1 0.4\n"
    )
    pair, out = _a_pair(table), tmp_path / "pair.json"
    done = invoke("explain", model, scored, pair, "--moses-ini", ini, "-o", out)
    found = json.loads(out.read_bytes())
    assert done.stdout.startswith(f"{pair}\n  one of ")
    assert sum(word["log_prob"] for word in found["words"]) == pytest.approx(found["log_prob"], abs=1e-4)
    column = found["columns"][-1]
    assert column["name"] == "RNN"
    assert column["log"] == pytest.approx(found["log_prob"], abs=1e-4)  # the table's own score
    assert found["table_limit"] == 2
    assert [rank["by"] for rank in found["ranks"]][2:] == ["weighted sum without RNN", "weighted sum with RNN"]
    ini.write_text(ini.read_text().replace("table-limit=2", "table-limit=0"))
    assert "cut" not in invoke("explain", model, scored, pair, "--moses-ini", ini).stdout
    assert "nor is its source" in invoke("explain", model, scored, "no such ||| rien").stdout


def _a_pair(table):
    with gzip.open(table) as lines:
        line = next(itertools.islice(lines, 2000, None))
    return " ||| ".join(line.decode().split(" ||| ")[:2])
