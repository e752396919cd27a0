"""moses-rnn merge, and the shards that moses-rnn-score makes for it, as users meet them."""

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
    done = run("merge", "merged.gz", *shards, cwd=here)
    assert "3,000 lines of 3 shards: merged.gz" in done.stderr
    assert "num-features=5" in done.stdout
    run("ini", "moses.ini", "--table", "merged.gz", "--absolute-paths", cwd=here)
    assert f"num-features=5 path={here / 'merged.gz'}" in (here / "moses.rnn.ini").read_text()
    run("score", "phrase-table.gz", cwd=here)
    check_same_scores(b"".join(lines_of(here / "merged.gz")), b"".join(lines_of(here / "phrase-table.rnn.gz")))
    assert run("validate", "merged.gz", cwd=here).returncode == 0


def test_a_shard_names_lines_by_their_numbers_in_the_table(here):
    lines = lines_of(here / "phrase-table.gz")
    lines[2500] = b"bad\n"
    (here / "table").write_bytes(b"".join(lines))
    model = ["--model", "phrase-table.rnn-model"]
    refused = run("score", "table", *model, "--shard", "3/3", cwd=here, check=False)
    assert (refused.returncode, "table:2501: expected" in refused.stderr) == (3, True)
    again = ["--on-bad-line", "skip", "--resume"]
    assert "999 lines, 1 left out" in run("score", "table", *model, "--shard", "3/3", *again, cwd=here).stderr
    few = run("score", "table", *model, "--shard", "1/4000", cwd=here, check=False)
    assert (few.returncode, "expected at least one line in shard 1/4000, found none" in few.stderr) == (3, True)
