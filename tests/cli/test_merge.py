"""moses-rnn-merge, and the shards that moses-rnn-score makes for it, as users meet them."""

import os
import shutil

import pytest

from tests.cli.scored import INI, lines_of
from tests.commands import run
from tests.same_scores import check_same_scores


@pytest.fixture
def shards(here):
    """A table in three shards, each scored by a run of its own."""
    for number in (1, 2, 3):
        run("score", "phrase-table.gz", "--shard", f"{number}/3", cwd=here)
    return [f"phrase-table.rnn.{number}-of-3.gz" for number in (1, 2, 3)]


def test_shards_become_the_table_and_the_ini_for_mert(here, shards):
    (here / "moses.ini").write_text(INI.format(table=here / "phrase-table.gz"))
    done = run("merge", "merged.gz", *shards, "--moses-ini", "moses.ini", "--weight", 0.75, cwd=here)
    assert done.stdout.endswith(" 0.75\n")
    assert "3,000 lines of 3 shards: merged.gz" in done.stderr
    assert "num-features=5" in done.stdout
    assert f"path={here / 'merged.gz'}" in (here / "moses.rnn.ini").read_text()
    run("score", "phrase-table.gz", cwd=here)
    check_same_scores(b"".join(lines_of(here / "merged.gz")), b"".join(lines_of(here / "phrase-table.rnn.gz")))
    assert run("validate", "merged.gz", cwd=here).returncode == 0
    again = run("merge", "merged.gz", *shards, "--resume", cwd=here)
    assert (again.stdout, "merged.gz: already complete" in again.stderr) == ("", True)


def test_a_shard_prints_no_lines_for_an_ini_and_takes_none(here):
    done = run("score", "phrase-table.gz", "--shard", "2/3", cwd=here)
    assert done.stdout == ""
    refused = run("score", "phrase-table.gz", "--shard", "2/3", "--moses-ini", "moses.ini", cwd=here, check=False)
    assert (refused.returncode, "moses-rnn-merge" in refused.stderr) == (2, True)


def test_slurm_says_which_shard(here):
    task = {"SLURM_ARRAY_TASK_ID": "7", "SLURM_ARRAY_TASK_MIN": "5", "SLURM_ARRAY_TASK_COUNT": "12"}
    run("score", "phrase-table.gz", "--shard", "auto", cwd=here, env={**os.environ, **task})
    assert (here / "phrase-table.rnn.03-of-12.gz").is_file()


def test_an_interrupted_shard_goes_on(here, shards):
    refused = run("score", "phrase-table.gz", "--shard", "2/3", cwd=here, check=False)
    assert "exists already" in refused.stderr
    (here / shards[1]).unlink()
    missing = run("merge", "merged.gz", *shards, cwd=here, check=False)
    assert missing.returncode == 3
    assert f"{shards[1]}: expected " in missing.stderr
    assert not (here / "merged.gz").exists()


def test_more_shards_than_sources(here):
    shutil.rmtree(here / "nothing", ignore_errors=True)
    few = b"".join(lines_of(here / "phrase-table.gz")[:40])
    (here / "few").write_bytes(few)
    options = ["--model", "phrase-table.rnn-model"]
    for number in range(1, 31):
        run("score", "few", *options, "--shard", f"{number}/30", "-o", f"few.{number}.gz", cwd=here)
    run("merge", "few.rnn.gz", *[f"few.{number}.gz" for number in range(30, 0, -1)], cwd=here)
    run("score", "few", *options, "-o", "few.whole.gz", cwd=here)
    check_same_scores(b"".join(lines_of(here / "few.rnn.gz")), b"".join(lines_of(here / "few.whole.gz")))
