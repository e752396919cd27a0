"""Options that share out work: what they refuse, and that lists come out as without them."""

import pytest

from tests.cli.scored import lines_of
from tests.commands import run
from tests.same_scores import check_same_scores
from tests.translation.sentences import save_model, sentences, text


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


def test_lists_come_out_as_without(tmp_path):
    here, model = tmp_path, save_model(tmp_path / "network")
    (here / "text").write_bytes(text(sentences(600)))
    run("nmt", "translate", model, "text", "-o", "out", "--n-best", "3", "whole.list", "--beam", "4", cwd=here)
    options = ["nbest", "whole.list", "--source", "text", "--add", model]
    run(*options, "-o", "list.whole", cwd=here)
    for number in (1, 2):
        run(*options, "-o", "list", "--shard", f"{number}/2", cwd=here)
    whole = (here / "list.whole").read_bytes()
    assert b"RNN1=" in whole
    check_same_scores(b"".join((here / f"list.{n}-of-2").read_bytes() for n in (1, 2)), whole)
