"""Options that share out work: what they refuse, and that lists and texts come out as without them."""

import gzip

import pytest

from moses_rnn.cli.pool_options import with_shard
from moses_rnn.files.shards import Shard
from tests.cli.scored import lines_of
from tests.commands import run
from tests.same_scores import check_same_scores
from tests.translation.sentences import save_model, sentences, text


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("t.gz", "t.02-of-12.gz"),
        ("a/b.c/t.rnn.zst", "a/b.c/t.rnn.02-of-12.zst"),
        ("out", "out.02-of-12"),
        ("big.out", "big.out.02-of-12"),
    ],
)
def test_each_shard_has_a_name_of_its_own(path, named):
    assert with_shard(path, Shard(2, 12)) == named
    assert with_shard(path, None) == path


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--processes", "2", "--ray", "auto"], "--processes are of this machine, --ray is a cluster: give one"),
        (["--ray-workers", "2"], "--ray-workers are a cluster's: give --ray"),
        (["--shard", "3/2"], "--shard: expected k/N with k from 1 to N, or auto, found '3/2'"),
        (["--shard", "auto"], "--shard auto: expected SLURM_ARRAY_TASK_ID, SLURM_PROCID, RANK"),
        (["--processes", "0"], "0 is not in the range"),
    ],
)
def test_what_contradicts_itself(here, options, message):
    done = run("score", "phrase-table.gz", *options, cwd=here, check=False)
    assert done.returncode != 0
    assert message in done.stderr


def test_processes_score_the_same_table(here):
    run("score", "phrase-table.gz", "-o", "threads.gz", cwd=here)
    run("score", "phrase-table.gz", "-o", "processes.gz", "--processes", "2", cwd=here)
    assert lines_of(here / "processes.gz") == lines_of(here / "threads.gz")


@pytest.mark.timeout(600)
def test_a_ray_cluster_scores_the_same_table(here):
    """One of this run alone, so that no other run's is met."""
    pytest.importorskip("ray")
    run("score", "phrase-table.gz", "-o", "threads.gz", cwd=here)
    done = run("score", "phrase-table.gz", "-o", "actors.gz", "--ray", "local", "--ray-workers", "2", "-q", cwd=here)
    assert "Ray" not in done.stderr
    assert lines_of(here / "actors.gz") == lines_of(here / "threads.gz")


def test_lists_and_texts_come_out_as_without(tmp_path):
    here, model = tmp_path, save_model(tmp_path / "network")
    (here / "text").write_bytes(text(sentences(600)))  # two blocks
    lists = [["-o", name, "--n-best", "3", f"{name}.list", "--beam", "4"] for name in ("whole", "processes", "part")]
    run("nmt", "translate", model, "text", *lists[0], cwd=here)
    run("nmt", "translate", model, "text", *lists[1], "--processes", "1", cwd=here)
    for number in (1, 2):
        run("nmt", "translate", model, "text", *lists[2], "--shard", f"{number}/2", cwd=here)
    for suffix in ("", ".list"):
        whole = (here / f"whole{suffix}").read_bytes()
        parts = [(here / f"part{suffix}").with_name(f"part{suffix}.{n}-of-2").read_bytes() for n in (1, 2)]
        assert (here / f"processes{suffix}").read_bytes() == whole
        check_same_scores(b"".join(parts), whole)
    options = ["nbest", "whole.list", "--source", "text", "--add", model]
    run(*options, "-o", "list.whole", cwd=here)
    run(*options, "-o", "list.processes", "--processes", "2", cwd=here)
    for number in (1, 2):
        run(*options, "-o", "list", "--shard", f"{number}/2", cwd=here)
    whole = (here / "list.whole").read_bytes()
    assert b"RNN1=" in whole
    assert (here / "list.processes").read_bytes() == whole
    check_same_scores(b"".join((here / f"list.{n}-of-2").read_bytes() for n in (1, 2)), whole)


def test_a_shard_of_a_pipe_is_refused(here):
    done = run("score", "-", "--model", "phrase-table.rnn-model", "--shard", "1/2", "-o", "x.gz", cwd=here, check=False)
    assert "expected a file, whose parts can be read one by one, found a pipe" in done.stderr


def test_a_shard_is_not_for_stdout(here):
    table = gzip.decompress((here / "phrase-table.gz").read_bytes())
    (here / "plain").write_bytes(table)
    options = ["--model", "phrase-table.rnn-model", "--shard", "1/2", "-o", "-"]
    done = run("score", "plain", *options, cwd=here, check=False)
    assert done.returncode == 2
    assert "--shard" in done.stderr
