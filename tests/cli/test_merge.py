"""moses-rnn merge, and the shards that moses-rnn-score makes for it, as users meet them."""

from tests.cli.scored import lines_of
from tests.commands import run


def test_a_shard_names_lines_by_their_numbers_in_the_table(here):
    lines = lines_of(here / "phrase-table.gz")
    lines[2500] = b"bad\n"
    (here / "table").write_bytes(b"".join(lines))
    model = ["--model", "phrase-table.rnn-model"]
    refused = run("score", "table", *model, "--shard", "3/3", cwd=here, check=False)
    assert (refused.returncode, "table:2501: expected" in refused.stderr) == (3, True)
    again = ["--on-bad-line", "skip", "--resume"]
    assert "999 lines scored, 1 left out" in run("score", "table", *model, "--shard", "3/3", *again, cwd=here).stderr
    few = run("score", "table", *model, "--shard", "1/4000", cwd=here, check=False)
    assert (
        few.returncode,
        "expected at least one valid line in shard 1/4000, found a table of 3,000 lines" in few.stderr,
    ) == (3, True)
