"""moses-rnn-score: what it makes, what it says, what it refuses."""

import os
import re

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
