"""moses-rnn-score: what it makes, what it says, what it refuses."""

import gzip
import json
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from moses_rnn.native import SWITCH, native_core
from tests.cli.scored import (
    added_values,
    lines_of,
    without_last_scores,
)
from tests.commands import run


def test_the_bare_command_just_works(here):
    done = run("score", "phrase-table.gz", cwd=here)
    table = here / "phrase-table.rnn.gz"
    assert done.stdout == (
        "[feature]\nPhraseDictionaryMemory name=TranslationModel0 num-features=5 "
        f"path={table} input-factor=0 output-factor=0\n\n[weight]\nTranslationModel0= 0.2 0.2 0.2 0.2 0.2\n"
    )
    assert "3,000 lines in and out: phrase-table.rnn.gz" in done.stderr
    assert f"computed by: {native_core() or 'torch'}, fp32" in done.stderr
    lines = lines_of(table)
    assert list(without_last_scores(lines)) == lines_of(here / "phrase-table.gz")
    assert all(0 < value <= 1 for (value,) in added_values(lines))


def test_an_estimate_writes_nothing(here):
    before = sorted(here.iterdir())
    done = run("score", "phrase-table.gz", "--estimate", "--allow-misfit", cwd=here)
    assert re.fullmatch(r"[\d,]+ lines/s here \(.*, fp32\): 0:0\d:\d\d for about 3,000 lines\n", done.stdout)
    assert (done.stderr, sorted(here.iterdir())) == ("", before)


def test_through_pipes(here):
    command = Path(sys.executable).with_name("moses-rnn-score")
    data = gzip.decompress((here / "phrase-table.gz").read_bytes())
    done = subprocess.run(
        [command, "-", "--model", "phrase-table.rnn-model"], input=data, capture_output=True, cwd=here, check=True
    )
    assert list(without_last_scores(done.stdout.splitlines(keepends=True))) == data.splitlines(keepends=True)
    assert b"TranslationModel0= " in done.stderr
    assert sorted(path.name for path in here.iterdir()) == ["phrase-table.gz", "phrase-table.rnn-model"]


def test_equal_runs_give_equal_bytes_whatever_the_workers(here):
    for name, device in (("a.gz", "cpu"), ("b.gz", "cpu"), ("c.gz", "cpu,cpu")):
        run("score", "phrase-table.gz", "-o", name, "--threads", "1", "--device", device, cwd=here)
    assert (here / "a.gz").read_bytes() == (here / "b.gz").read_bytes() == (here / "c.gz").read_bytes()


def test_without_a_model_the_command_to_run_is_named(here):
    shutil.rmtree(here / "phrase-table.rnn-model")
    done = run("score", "phrase-table.gz", cwd=here, check=False)
    assert done.returncode == 3
    assert "phrase-table.rnn-model: " in done.stderr
    assert "moses-rnn-train phrase-table.gz" in done.stderr


def test_existing_output_needs_force(here):
    (here / "phrase-table.rnn.gz").write_bytes(b"precious")
    done = run("score", "phrase-table.gz", cwd=here, check=False)
    assert (done.returncode, (here / "phrase-table.rnn.gz").read_bytes()) == (1, b"precious")
    assert "exists already" in done.stderr
    run("score", "phrase-table.gz", "--force", cwd=here)
    assert len(lines_of(here / "phrase-table.rnn.gz")) == 3000


def test_a_constant_column_is_reported(here):
    (here / "known").write_bytes(b"the ||| le ||| 1\na ||| un ||| 1\n")
    done = run("score", "known", "--model", "phrase-table.rnn-model", "--word-penalty", cwd=here)
    assert "warning: WordPenalty is the same on every line: MERT cannot find a weight for it" in done.stderr


def test_a_table_scored_already_is_recognised_before_it_is_scored_again(here):
    run("score", "phrase-table.gz", "-o", "once.gz", cwd=here)
    twice = ("score", "once.gz", "--model", "phrase-table.rnn-model")
    done = run(*twice, cwd=here, check=False)
    assert done.returncode == 3
    assert "once.gz: expected a table without RNN" in done.stderr
    assert "--again" in done.stderr
    alone = run("score", "once.gz", cwd=here, check=False)  # no model beside it: one is not offered to be trained on it
    assert "once.gz: has RNN already" in alone.stderr
    run(*twice, "--again", cwd=here)
    assert lines_of(here / "once.rnn.gz")[0].split(b" ||| ")[2].count(b" ") == 5
    (here / "once.gz").write_bytes((here / "phrase-table.gz").read_bytes())  # the signature is of a file that is gone
    run(*twice, "--force", cwd=here)


@pytest.fixture
def foreign(here):
    """A table of which the model knows no word."""
    lines = [b"%s ||| %s ||| 0.5 1\n" % (b"x%d" % (i // 4), b"y%d z%d" % (i, i)) for i in range(500)]
    (here / "foreign").write_bytes(b"".join(lines))
    return here


def test_a_table_that_the_model_does_not_know_is_refused_and_can_be_insisted_on(foreign):
    words = ("score", "foreign", "--model", "phrase-table.rnn-model")
    done = run(*words, cwd=foreign, check=False)
    assert done.returncode == 3
    assert re.search(r"foreign: expected .* found 100\.0% of the pairs .* in 500 lines\n", done.stderr)
    for advice in (
        "moses-rnn-train foreign\n",
        "500 lines are already scored and saved. Continue with --resume --allow-misfit",
    ):
        assert advice in done.stderr
    assert not (foreign / "foreign.rnn.gz").exists()
    insisted = run(*words, "--resume", "--allow-misfit", cwd=foreign)
    assert "RNN: 100.0% of the pairs have <unk>, " in insisted.stderr
    assert "warning: RNN: 100.0% of the pairs have a word outside the model's shortlists" in insisted.stderr
    column = json.loads((foreign / "foreign.rnn.gz.json").read_text())["added_columns"][0]
    assert (column["unknown"], column["unknown_share"], column["floored_share"]) == (500, 1.0, 0.0)


def test_scores_at_the_floor_are_a_misfit_too(here):
    words = ("score", "phrase-table.gz", "--floor", "-0.001")
    done = run(*words, cwd=here, check=False)
    assert done.returncode == 3
    assert re.search(r"found (100.0|99\.\d)% of the scores at the floor in 3,000 lines", done.stderr)
    run(*words, "--allow-misfit", "--force", cwd=here)


def test_a_model_that_is_no_better_than_unigrams_is_refused(here):
    config = here / "phrase-table.rnn-model" / "config.json"
    record = json.loads(config.read_text())
    best = min(step["nats_per_token"] for step in record["provenance"]["history"])
    record["provenance"]["unigram_nats_per_token"] = best
    config.write_text(json.dumps(record))
    done = run("score", "phrase-table.gz", cwd=here, check=False)
    assert done.returncode == 3
    assert f" {best:.2f} nats per target token, found {best:.2f}\n" in done.stderr
    run("score", "phrase-table.gz", "--allow-misfit", cwd=here)


def test_without_a_gpu_the_cpu_is_never_taken_silently(here):
    done = run(
        "score",
        "phrase-table.gz",
        "--device",
        "cuda",
        cwd=here,
        check=False,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )
    assert done.returncode == 1
    assert "--device cuda: expected a CUDA device, found none" in done.stderr


def test_precision_is_recorded_and_scores_stay_near(here):
    scores = {}
    for precision in ("fp32", "bf16"):
        run("score", "phrase-table.gz", "-o", f"{precision}.gz", "--precision", precision, cwd=here)
        scores[precision] = [math.log(p) for (p,) in added_values(lines_of(here / f"{precision}.gz"))]
        assert json.loads((here / f"{precision}.gz.json").read_text())["precision"] == precision
    assert scores["bf16"] == pytest.approx(scores["fp32"], abs=0.1)
    assert scores["bf16"] != scores["fp32"]


def test_what_computes_is_said_and_recorded(here):
    tables = []
    for environment, core in ((None, native_core()), ({**os.environ, "MOSES_RNN_NATIVE": "0"}, None)):
        done = run("score", "phrase-table.gz", "--force", cwd=here, env=environment)
        assert f"computed by: {core or 'torch'}, fp32" in done.stderr
        assert json.loads((here / "phrase-table.rnn.gz.json").read_text())["native"] == (core and str(core))
        tables.append([p for (p,) in added_values(lines_of(here / "phrase-table.rnn.gz"))])
    assert tables[0] == pytest.approx(tables[1], rel=1e-4)


def test_the_version_says_whether_there_is_a_native_core():
    expected = f"({native_core() or 'without the native core'})\n"
    assert run("score", "--version").stdout.endswith(expected)
    done = run("score", "--version", env={**os.environ, SWITCH: "sse9"})
    assert "MOSES_RNN_NATIVE: expected 0 or one of portable" in done.stdout
