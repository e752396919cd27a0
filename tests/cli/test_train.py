"""moses-rnn-train: what it makes, what it says, what it refuses, killed and run again."""

import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from moses_rnn.models.checkpoint import load_checkpoint
from tests.commands import run, settings, start
from tests.conftest import LEARNED, TINY


@pytest.fixture
def here(tmp_path, table):
    shutil.copy(table, tmp_path)
    return tmp_path


def test_says_what_it_found_and_what_it_does(here):
    done = run("train", "phrase-table.gz", *TINY, "--max-epochs", "1", "--preset", "small", cwd=here)
    assert done.stdout == ""
    for text in (
        "table: 3,000 lines, 3,000 distinct pairs; ",
        "% equal another pair once rare words are <unk>, and are learned once",
        "left out: 0 pairs longer than max_length, 0 with an empty side",
        "source shortlist: 60 of ",
        "% of running words",
        "held out by source phrase: ",
        "unigram baseline: ",
        "network: paper variant, H 8, ",
        "training: adam, learning rate 0.004, falling in the last 50%, weights averaged over about the last 10% of the steps, "
        "128 pairs a minibatch, "
        "pair-mean gradient clipped at 1, fp32, seed 1; ",
        "ends after 1 epoch or 30 minutes or 6 evaluations without gain",
        "     pairs  epochs      time  held-out nats  perplexity  clipped  tokens/s\n",
        "  best\n",
        "finished: 1 epoch is done; best held-out ",
        "moses-rnn-score will refuse this model",
    ):
        assert text in done.stderr
    assert "no GPU" not in done.stderr


def next_words(done):
    return shlex.split(re.search(r"^next: moses-rnn-(.*)", done.stderr, re.MULTILINE)[1])


def test_the_next_command_is_said_and_can_be_run(here):
    learned = [*TINY, *LEARNED]
    inverse = run("train", "phrase-table.gz", *learned, "--inverse", "--model", "an inverse", cwd=here)
    direct = run(*next_words(inverse), *learned, cwd=here)
    assert "phrase-table.rnn.gz" in run(*next_words(direct), cwd=here).stderr
    again = run("train", "phrase-table.gz", *learned, "--inverse", "--model", "an inverse", cwd=here)
    assert "RNNInverse" in run(*next_words(again), "--force", cwd=here).stderr
    refused = run("train", "phrase-table.gz", *TINY, "--model", "m", "--max-epochs", "1", cwd=here)
    assert "next: " not in refused.stderr


def test_without_a_preset_and_a_gpu_it_says_how_long_the_papers_takes(here):
    done = run("train", "phrase-table.gz", *TINY, "--max-epochs", "1", "--device", "cpu", cwd=here)
    assert "no GPU: taking --preset small. --preset paper would learn about " in done.stderr


def test_the_checkpoint_remembers_the_run(here):
    run("train", "phrase-table.gz", *TINY, "--max-epochs", "1", "--seed", "7", cwd=here)
    provenance = load_checkpoint(here / "phrase-table.rnn-model").provenance
    assert provenance["table"] == "phrase-table.gz"
    assert provenance["training_options"]["seed"] == 7
    assert provenance["corpus"]["pairs"] == 3000
    assert provenance["history"][-1]["nats_per_token"] > 0
    log = (here / "phrase-table.rnn-model" / "training" / "log.jsonl").read_text().splitlines()
    assert json.loads(log[0])["best"]


@pytest.mark.parametrize(
    ("switches", "expected"),
    [
        ({"variant": "groundhog"}, ("groundhog", "last", "initial-state", "before")),
        ({"variant": "paper"}, ("paper", "tanh", "zero-embedding", "after")),
        ({"decoder_reset": "before"}, ("custom", "tanh", "zero-embedding", "before")),
        ({"variant": "groundhog", "summary": "tanh", "first_step": "zero-embedding", "decoder_reset": "after"}, ("paper", "tanh", "zero-embedding", "after")),
    ],
)  # fmt: skip
def test_variants_are_named(here, switches, expected):
    run("train", "phrase-table.gz", *TINY, "--max-epochs", "0.1", *settings(here, **switches), cwd=here)
    config = load_checkpoint(here / "phrase-table.rnn-model").model.config
    assert (config.variant, config.summary, config.first_step, config.decoder_reset) == expected


@pytest.mark.release
def test_a_run_killed_at_any_time_ends_with_the_same_weights(here):
    limits = ["--max-epochs", "6", "--threads", "1", "--device", "cpu", "--preset", "small"]
    options = [*TINY, *limits, *settings(here, evaluate_every=1500)]
    run("train", "phrase-table.gz", *options, "--model", "whole", cwd=here)
    command = [Path(sys.executable).with_name("moses-rnn-train"), "phrase-table.gz", *options, "--model", "killed"]
    for evaluations in (1, 3, 6):
        process = subprocess.Popen(command, cwd=here, stderr=subprocess.DEVNULL)
        log = here / "killed" / "training" / "log.jsonl"
        while process.poll() is None and not (log.exists() and log.read_bytes().count(b"\n") >= evaluations):
            time.sleep(0.005)
        process.kill()
        process.wait()
    done = run("train", "phrase-table.gz", *options, "--model", "killed", cwd=here)
    assert "resuming after " in done.stderr
    for name in ("model.safetensors", "source.vocab", "target.vocab"):
        assert (here / "whole" / name).read_bytes() == (here / "killed" / name).read_bytes()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_the_state_and_exits_resumable(here, number):
    process = start(
        "train",
        "phrase-table.gz",
        *TINY,
        *settings(here, evaluate_every=500),
        cwd=here,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (here / "phrase-table.rnn-model" / "config.json").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    _, messages = process.communicate(timeout=60)
    assert process.returncode == 75
    assert "stopping after saving what is done" in messages
    assert "pairs; run the same command again to continue" in messages
    assert (here / "phrase-table.rnn-model" / "training" / "state.safetensors").exists()


def test_pairs_left_out_are_counted(here):
    (here / "junk").write_bytes(
        b"".join(b"s%d ||| t%d ||| 1\n" % (i, i) for i in range(99)) + b"a b c ||| d ||| 1\n ||| d ||| 1\n"
    )
    done = run("train", "junk", *TINY, "--max-epochs", "1", *settings(here, max_length=2), cwd=here)
    assert "left out: 1 pairs longer than max_length, 1 with an empty side" in done.stderr


def test_other_options_are_refused_before_the_table_is_read(here):
    run("train", "phrase-table.gz", *TINY, "--max-epochs", "0.1", cwd=here)
    done = run("train", "phrase-table.gz", *TINY, "--max-epochs", "0.2", "--seed", "2", cwd=here, check=False)
    assert done.returncode == 3
    assert "found others: seed 1, now 2\n" in done.stderr
    assert "table: " not in done.stderr


def test_an_estimate_trains_nothing(here):
    done = run("train", "phrase-table.gz", *TINY, "--estimate", "--max-epochs", "3", "--device", "cpu", cwd=here)
    rate, compared = done.stdout.splitlines()
    assert re.fullmatch(
        r"[\d,]+ pairs/s here: 0:00:\d\d for each pass over 2,\d\d\d pairs; [\d.]+ passes in the time or epochs given",
        rate,
    )
    assert compared.startswith(
        "For comparison: on Multi30k (828,000 pairs) --preset small cost, of what a unigram model"
    )
    assert sorted(path.name for path in here.iterdir()) == ["phrase-table.gz"]


def test_a_training_ends_with_a_verdict(here):
    done = run("train", "phrase-table.gz", *TINY, *LEARNED, *settings(here, evaluate_every=500), cwd=here)
    assert re.search(
        r"\nverdict: (still falling|converged): the held-out cost .* in the last third of the time", done.stderr
    )


def test_a_training_that_learned_nothing_is_warned_of(here):
    done = run("train", "phrase-table.gz", *TINY, "--max-epochs", "0.1", "--learning-rate", "1e-6", "-q", cwd=here)
    assert re.search(r"warning: learned nothing: [\d.]+ nats per target token, a unigram model costs [\d.]+: moses-rnn-score "
                     "will refuse this model; train longer", done.stderr)  # fmt: skip


def test_restart_starts_over(here):
    run("train", "phrase-table.gz", *TINY, "--max-epochs", "0.1", cwd=here)
    done = run("train", "phrase-table.gz", *TINY, "--hidden-size", "9", "--max-epochs", "0.1", cwd=here, check=False)
    assert done.returncode == 3
    assert "hidden_size 8, now 9" in done.stderr
    run("train", "phrase-table.gz", *TINY, "--hidden-size", "9", "--max-epochs", "0.1", "--restart", cwd=here)


def test_a_model_without_its_run_is_not_overwritten(here, model):
    shutil.copytree(model, here / "phrase-table.rnn-model", ignore=shutil.ignore_patterns("training"))
    done = run("train", "phrase-table.gz", *TINY, cwd=here, check=False)
    assert done.returncode == 3
    assert "phrase-table.rnn-model: " in done.stderr
    assert "--restart" in done.stderr


def test_two_runs_cannot_train_one_model(here):
    often = settings(here, evaluate_every=500)
    first = start("train", "phrase-table.gz", *TINY, *often, "-q", cwd=here, stderr=subprocess.DEVNULL)
    while not (here / "phrase-table.rnn-model" / "config.json").exists():
        assert first.poll() is None
        time.sleep(0.01)
    for options in ([], ["--restart"]):
        second = run("train", "phrase-table.gz", *TINY, *often, *options, cwd=here, check=False)
        assert second.returncode == 1
        assert "phrase-table.rnn-model: is being trained by another run" in second.stderr
    first.terminate()
    assert first.wait(60) == 75


def test_a_diverged_training_is_a_failure(here):
    done = run("train", "phrase-table.gz", *TINY, "--max-epochs", "2", "--learning-rate", "1e38", cwd=here, check=False)
    assert done.returncode == 1
    assert re.search(
        r"training diverged: after [\d,]+ pairs no gradient of the last \d+ minibatches is finite\n", done.stderr
    )
    assert "--restart and a lower --learning-rate" in done.stderr
    assert "finished" not in done.stderr


def test_a_shortlist_larger_than_the_papers_can_be_estimated(here):
    words = b"".join(b"s%d ||| t%d ||| 1\n" % (i, i) for i in range(17_000))
    (here / "wide").write_bytes(words)
    done = run("train", "wide", *TINY[:-2], "--shortlist", "16000", "--max-epochs", "0.01", "--device", "cpu", cwd=here)
    assert "would learn about" in done.stderr


def test_links_in_the_model_folder_are_not_written_through(here):
    run("train", "phrase-table.gz", *TINY, "--max-epochs", "0.2", "--quiet", cwd=here)
    model = here / "phrase-table.rnn-model"
    (here / "victim").write_bytes(b"precious")
    for name in (
        "training/source.tokens",
        "training/target.lengths",
        ".model.safetensors.part",
        "training/.state.safetensors.part",
    ):
        (model / name).unlink(missing_ok=True)
        (model / name).symlink_to(here / "victim")
    run("train", "phrase-table.gz", *TINY, "--max-epochs", "1", "--quiet", cwd=here)
    assert (here / "victim").read_bytes() == b"precious"
    assert not (model / "model.safetensors").is_symlink()
    (model / "training" / "log.jsonl").unlink()
    (model / "training" / "log.jsonl").symlink_to(here / "victim")
    done = run("train", "phrase-table.gz", *TINY, "--max-epochs", "2", "--quiet", cwd=here, check=False)
    assert (done.returncode, "log.jsonl: cannot be written: " in done.stderr) == (
        1,
        True,
    )
    assert (here / "victim").read_bytes() == b"precious"


def test_a_full_disk_names_the_file(here):
    line = f"ulimit -f 8; {Path(sys.executable).with_name('moses-rnn-train')} phrase-table.gz {' '.join(TINY)} --model m -q"
    done = subprocess.run(["bash", "-c", line], cwd=here, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "m/training/source.tokens: cannot be written: File too large (" in done.stderr
    assert " bytes wanted, " in done.stderr
    assert not (here / "m").exists()
