import re

from tests.commands import run


def test_an_estimate_writes_nothing(here):
    before = sorted(here.iterdir())
    done = run("score", "phrase-table.gz", "--estimate", "--allow-misfit", cwd=here)
    assert re.fullmatch(r"[\d,]+ lines/s here \(.*, fp32\): 0:0\d:\d\d for about 3,000 lines\n", done.stdout)
    assert (done.stderr, sorted(here.iterdir())) == ("", before)
