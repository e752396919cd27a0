"""What moses-rnn-nbest refuses."""

import os
from pathlib import Path

import pytest

from tests.cli.nbest.lists import NBEST

USAGE = {
    "nothing": (["n", "--source", "src"], "nothing to add: give --add MODEL, --ensemble or --word-penalty"),
    "no source": (
        ["n", "--add", "{}/rnn"],
        "RNN0 is of source and target: give the list's source text with --source",
    ),
    "two lists": (["n", "m", "--source", "src"], "Got unexpected extra argument (m)"),
    "standard input twice": (
        ["-", "--source", "-", "--cslm", "x"],
        "only one of the list and --source can be -",
    ),
    "backoff": (
        ["n", "--source", "src", "--word-penalty", "x", "--backoff", "y"],
        "--backoff is the n-gram model that a CSLM backs off to: give one with --add",
    ),
    "shares of two kinds": (
        ["n", "--source", "src", "--add", "x", "--backoff", "y", "--rare", "uniform", "--vocabulary", "z"],
        "--rare and --backoff both share out <unk>: give one of them",
    ),
    "several workers that learn": (
        ["n", "--source", "src", "--add", "x", "--dynamic", "--processes", "2"],
        "--dynamic learns from the whole list in its order: it needs one worker, in this process",
    ),
    "a part of a list to learn from": (
        ["n", "--source", "src", "--add", "x", "--dynamic", "--shard", "1/2", "-o", "out"],
        "--dynamic learns from the whole list in its order: it needs one worker, in this process",
    ),
    "shares of nothing": (["n", "--source", "src", "--add", "x", "--shares", "1"], "--shares is for --ensemble"),
    "shares that are no numbers": (
        ["n", "--source", "src", "--ensemble", "x,y", "--shares", "half,half"],
        "--shares half,half: expected numbers with commas between",
    ),
    "shares of no words": (
        ["n", "--source", "src", "--add", "x", "--rare", "uniform"],
        "--rare uniform and --vocabulary, the text that has the rare words, go together",
    ),
    "words to share nothing": (
        ["n", "--source", "src", "--add", "x", "--vocabulary", "z"],
        "--rare uniform and --vocabulary, the text that has the rare words, go together",
    ),
    "whole": (
        ["n", "--source", "src", "--cslm", "x", "--whole"],
        "--whole says how networks of pairs score: give one with --add",
    ),
    "nothing to combine": (
        ["n", "--source", "src", "--add", "x", "--combine", "arithmetic"],
        "--combine is for --ensemble",
    ),
    "a rate without learning": (
        ["n", "--source", "src", "--add", "x", "--dynamic-rate", "0.1"],
        "--dynamic-rate is for --dynamic",
    ),
    "a vocabulary that cannot be read twice": (
        ["n", "--source", "src", "--add", "x", "--rare", "uniform", "--vocabulary", "-"],
        "--vocabulary needs a file: it is read for each model",
    ),
    "an ensemble with an empty name": (
        ["n", "--source", "src", "--ensemble", "x,,y"],
        "--ensemble x,,y: expected models with commas between, found an empty name",
    ),
    "words": (
        ["n", "--source", "src", "--cslm", "x", "--word-penalty-words", "9"],
        "--word-penalty-words is for --word-penalty",
    ),
    "no reference": (["tune", "n"], "Missing option '--reference'."),
    "optimiser": (
        ["tune", "n", "--reference", "ref", "--optimiser", "pro"],
        "Invalid value for '--optimiser': 'pro' is not one of 'moses-mert', 'kbmira', 'mert'.",
    ),
    "no weights": (["rerank", "n"], "give either the WEIGHTS to choose by or --even FEATURE"),
}


@pytest.mark.parametrize(("arguments", "message"), USAGE.values(), ids=USAGE)
def test_wrong_command_lines(nbest, arguments, message):
    done = nbest(*arguments, code=2)
    assert done.stderr.startswith("Usage: moses-rnn-nbest ")
    assert done.stderr.endswith(f"\n\nError: {message}\n")


WP = ["--source", "src", "--word-penalty", "{}/words"]
REJECTED = {
    "no list": (["none", *WP], "none: expected a file, found nothing of that name (nor none.gz)"),
    "no source": (
        ["n", "--source", "none", "--cslm", "{}/cslm"],
        "none: expected a file, found nothing of that name (nor none.gz)",
    ),
    "empty list": (["empty", *WP], "empty: expected at least one line, found an empty file"),
    "no n-best list": (["src", *WP], "src:1: expected at least 4 fields separated by '|||', found 1: 's2 s3 s4 s5'"),
    "short source": (
        ["n", "--source", "short", "--word-penalty", "{}/words"],
        "n:3: expected a sentence number below 1, the number of source sentences, found 1",
    ),
    "another direction": (
        ["n", "--source", "src", "--rnn", "{}/inverse"],
        "{}/inverse: expected a model for --rnn, found one for --inverse-rnn",
    ),
    "no segmentation": (
        ["plain", "--source", "src", "--rnn", "{}/rnn"],
        "plain:1: expected a segmentation, for the phrases of a hypothesis, found none\n"
        "  Make the list with -include-segmentation-in-n-best, or score whole sentences with --whole, which a\n"
        "  network that learned phrases was not made for.",
    ),
    "nothing that backs off": (
        ["n", "--source", "src", "--add", "{}/rnn", "--whole", "--backoff", "src"],
        "--backoff: expected a language model among the networks, whose <unk> it shares, found none",
    ),
    "nothing that shares": (
        ["n", "--source", "src", "--add", "{}/rnn", "--whole", "--rare", "uniform", "--vocabulary", "src"],
        "--rare: expected a language model among the networks, whose <unk> it shares, found none",
    ),
    "an n-gram model beside a network's <unk>": (
        ["n", "--source", "src", "--ensemble", "{}/cslm,src"],
        "--ensemble: expected --backoff or --rare uniform for a network beside an n-gram model, found neither\n"
        "  Without it every word outside the shortlist would have all that the network gives to <unk>.",
    ),
    "reference too short": (
        ["tune", "n", "--reference", "short"],
        "n:3: expected a sentence number below 1, the number of lines of the references, found 1",
    ),
    "references": (
        ["tune", "n", "--reference", "ref", "--reference", "short"],
        "references: expected texts with equally many lines, found 4, 1",
    ),
    "no weights": (["tune", "n", "--reference", "ref", "--weights", "none"], "none: cannot be read: No such file or directory"),
    "no Moses": (
        ["tune", "n", "--reference", "ref", "--optimiser", "kbmira"],
        "kbmira: expected a built Moses, found none\n  Name it with MOSES_ROOT, or choose 'mert'.",
    ),
    "an empty Moses": (
        ["tune", "n", "--reference", "ref", "--optimiser", "moses-mert", "--moses-root", "/dev"],
        "/dev/bin/mert: expected a program of Moses, found none\n"
        "  MOSES_ROOT must be the folder of a built Moses (github.com/moses-smt/mosesdecoder, ./bjam -j4); "
        "compact tables need --with-cmph.",
    ),
    "rerank without weights": (["rerank", "n", "none"], "none: cannot be read: No such file or directory"),
    "weights of another list": (
        ["rerank", "plain", "other.ini"],
        "other.ini: expected 1 weights of LM0, as the n-best list has values, found LM0= 1.0 2.0",
    ),
    "rerank's reference too short": (
        ["rerank", "n", "w.ini", "--reference", "short"],
        "n:3: expected a sentence number below 1, the number of lines of the references, found 1",
    ),
    "no segments": (
        ["rerank", "plain", "w.ini", "--segments"],
        "plain:1: expected a segmentation, found none\n"
        "  Make the list with -include-segmentation-in-n-best.",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), REJECTED.values(), ids=REJECTED)
def test_inputs_that_are_rejected(nbest, here, models, arguments, message):
    (here / "empty").touch()
    (here / "short").write_bytes(b"s2\n")
    (here / "plain").write_bytes(b"0 ||| t2 ||| LM0= 1 ||| 1 ||| 0-0 \n")
    (here / "other.ini").write_bytes(b"[weight]\nLM0= 1 2\n")
    before = sorted(os.listdir(here))
    done = nbest(*arguments, "-o", "out", code=3)
    assert done.stderr == f"moses-rnn-nbest: {message}\n".replace("{}", str(models))
    assert sorted(os.listdir(here)) == before  # nor anything hidden


FAILED = {
    "no folder": (["n", *WP, "-o", "none/out"], "none/out: cannot be written: No such file or directory"),
    "device": (
        ["n", *WP, "--device", "tpu"],
        "--device tpu: expected cpu, cuda or cuda:N that torch can use here, found no such device",
    ),
}


@pytest.mark.parametrize(("arguments", "message"), FAILED.values(), ids=FAILED)
def test_failures_that_are_nobody_s_input(nbest, arguments, message):
    done = nbest(*arguments, code=1)
    assert (done.stdout, done.stderr) == (b"", f"moses-rnn-nbest: {message}\n")


@pytest.mark.parametrize("arguments", [["n", *WP], ["rerank", "more", "w.ini"], ["tune", "more", "--reference", "ref"]])
def test_a_full_standard_output_is_a_failure(nbest, more, arguments):
    done = nbest(*arguments, stdout=Path("/dev/full"), code=1)
    assert done.stderr.endswith("moses-rnn-nbest: standard output: No space left on device\n")


def test_a_list_that_is_wrong_further_down_leaves_nothing(nbest, here):
    (here / "n").write_bytes(NBEST + b"4 ||| t2 ||| LM0= ||| 1\n")
    done = nbest("n", *WP, "-o", "out", code=3)
    assert done.stderr == "moses-rnn-nbest: n:10: expected a number after 'LM0=' in field 3, found none\n"
    assert sorted(os.listdir(here)) == ["n", "ref", "src", "w.ini"]


def test_an_rnn_that_learned_nothing_is_refused_unless_it_is_allowed(nbest):
    words = ["n", "--source", "src", "--rnn", "{}/unlearned", "--whole", "-o", "out"]
    done = nbest(*words, code=3)
    assert (
        "unlearned: expected a model that costs less than a unigram model's 2.00 nats per target token, found 3.00"
        in (done.stderr)
    )
    nbest(*words, "--allow-misfit")
