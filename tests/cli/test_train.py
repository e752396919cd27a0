"""moses-rnn-train: what it makes, what it says, what it refuses, killed and run again."""

import gzip
import re
import shlex
import shutil
import signal
import subprocess
import time

import pytest

from tests.commands import run, settings, start
from tests.conftest import LEARNED, TINY


@pytest.fixture
def here(tmp_path, table):
    shutil.copy(table, tmp_path)
    return tmp_path


def next_words(done):
    return shlex.split(re.search(r"^next: moses-rnn-(.*)", done.stderr, re.MULTILINE)[1])


def test_the_next_command_is_said_and_can_be_run(here):
    learned = [*TINY, *LEARNED]
    inverse = run("train", "phrase-table.gz", *learned, "--inverse", "--model", "an inverse", cwd=here)
    direct = run(*next_words(inverse), *learned, cwd=here)
    assert "phrase-table.rnn.gz" in run(*next_words(direct), cwd=here).stderr
    again = run("train", "phrase-table.gz", *learned, "--inverse", "--model", "an inverse", cwd=here)
    assert "RNNInverse" in run(*next_words(again), "--force", cwd=here).stderr


def test_the_next_command_after_pairs_of_the_other_direction_can_be_run(here):
    lines = gzip.decompress((here / "phrase-table.gz").read_bytes()).splitlines()
    (here / "pairs.tsv").write_bytes(b"".join(b"%b\t%b\n" % (*line.split(b" ||| ")[:2],) for line in lines))
    options = ["--format", "tsv", *TINY, *LEARNED, "--inverse"]
    done = run("train", "pairs.tsv", *options, cwd=here)
    scored = run(*next_words(done), "--allow-misfit", "-o", "scored", cwd=here)
    assert f"{len(lines):,} pairs scored: scored" in scored.stderr
    assert re.search(r"^score: .*p\(source \| target\)", scored.stderr, re.MULTILINE)


def test_a_signal_saves_the_state_and_exits_resumable(here):
    options = [*TINY, *settings(here, evaluate_every=500)]
    process = start("train", "phrase-table.gz", *options, cwd=here, stderr=subprocess.PIPE, text=True)
    while not (here / "phrase-table.rnn-model" / "config.json").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    _, messages = process.communicate(timeout=60)
    assert process.returncode == 75
    assert "stopping after saving what is done" in messages
    assert "pairs; run the same command again to continue" in messages
    left = {path.name for path in (here / "phrase-table.rnn-model" / "training").iterdir()}
    assert left == {"lock", "log.jsonl", "state.safetensors"}


def test_an_estimate_trains_nothing(here):
    done = run("train", "phrase-table.gz", *TINY, "--estimate", "--max-epochs", "3", "--device", "cpu", cwd=here)
    rate, compared = done.stdout.splitlines()
    assert re.fullmatch(
        r"[\d,]+ pairs/s here: 0:00:\d\d per pass over 2,\d\d\d pairs; [\d.]+ passes within the limit",
        rate,
    )
    assert compared.startswith(
        "For comparison: on Multi30k (828,000 pairs), the cost with --preset small, as a share of a unigram"
    )
    assert sorted(path.name for path in here.iterdir()) == ["phrase-table.gz"]


def test_a_diverged_training_is_a_failure(here):
    done = run("train", "phrase-table.gz", *TINY, "--max-epochs", "2", "--learning-rate", "1e38", cwd=here, check=False)
    assert done.returncode == 1
    assert re.search(
        r"training diverged: after [\d,]+ pairs, no gradient of the last \d+ minibatches is finite\n", done.stderr
    )
    assert "--force and a lower --learning-rate" in done.stderr
    assert "finished" not in done.stderr


def test_links_in_the_model_folder_are_not_written_through(here):
    run("train", "phrase-table.gz", *TINY, "--max-epochs", "0.2", "--quiet", cwd=here)
    model = here / "phrase-table.rnn-model"
    (here / "victim").write_bytes(b"precious")
    parts = [".model.safetensors.part", "training/.state.safetensors.part"]
    for name in ("training/source.tokens", "training/target.lengths", *parts):
        (model / name).unlink(missing_ok=True)
        (model / name).symlink_to(here / "victim")
    run("train", "phrase-table.gz", *TINY, "--max-epochs", "1", "--quiet", cwd=here)
    assert (here / "victim").read_bytes() == b"precious"
    assert not (model / "model.safetensors").is_symlink()
    (model / "training" / "log.jsonl").unlink()
    (model / "training" / "log.jsonl").symlink_to(here / "victim")
    done = run("train", "phrase-table.gz", *TINY, "--max-epochs", "2", "--quiet", cwd=here, check=False)
    assert (done.returncode, "log.jsonl: cannot be written: " in done.stderr) == (1, True)
    assert (here / "victim").read_bytes() == b"precious"
