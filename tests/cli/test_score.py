"""moses-rnn-score: what it makes, what it says, what it refuses."""

import json
import math
import os
import re

import pytest

from moses_rnn.native import SWITCH, native_core
from tests.cli.scored import added_values, lines_of
from tests.commands import run


def test_an_estimate_writes_nothing(here):
    before = sorted(here.iterdir())
    done = run("score", "phrase-table.gz", "--estimate", "--allow-misfit", cwd=here)
    assert re.fullmatch(r"[\d,]+ lines/s here \(.*, fp32\): 0:0\d:\d\d for about 3,000 lines\n", done.stdout)
    assert (done.stderr, sorted(here.iterdir())) == ("", before)


def test_without_a_gpu_the_cpu_is_never_taken_silently(here):
    hidden = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = run("score", "phrase-table.gz", "--device", "cuda", cwd=here, check=False, env=hidden)
    assert done.returncode == 1
    assert "--device cuda: expected a CUDA device, found none" in done.stderr


def test_what_computes_is_said_and_recorded_and_scores_stay_near(here):
    tables = {}
    for precision, native in (("fp32", True), ("fp32", False), ("bf16", False)):
        core = native_core() if native else None
        environment = None if native else {**os.environ, SWITCH: "0"}
        done = run("score", "phrase-table.gz", "--force", "--precision", precision, cwd=here, env=environment)
        assert f"computed by: {core or 'torch'}, {precision}" in done.stderr
        signature = json.loads((here / "phrase-table.rnn.gz.json").read_text())
        assert (signature["native"], signature["precision"]) == (core and str(core), precision)
        tables[precision, native] = [math.log(p) for (p,) in added_values(lines_of(here / "phrase-table.rnn.gz"))]
    exact, by_torch, rough = tables.values()
    assert by_torch == pytest.approx(exact, abs=1e-4)
    assert rough == pytest.approx(exact, abs=0.1)
    assert rough != exact
