"""moses-rnn merge, and the shards that moses-rnn-score makes for it, as users meet them."""

import json
import subprocess

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


def test_a_shard_may_be_empty(here):
    scored = run("score", "phrase-table.gz", "--shard", "1/4000", "-o", "shard.gz", "--json", cwd=here)
    assert (json.loads(scored.stdout)["lines"], json.loads(scored.stdout)["columns"]) == (0, [])
    subprocess.run(["gzip", "-t", here / "shard.gz"], check=True)
