"""moses-rnn cslm: perplexities of several models, of any kind, and the file that a decoder reads."""

import gzip
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest
import torch

from moses_rnn.models.open import save_model
from moses_rnn.networks.bengio import Bengio, BengioConfig
from moses_rnn.networks.vocabulary import Vocabulary
from tests.commands import zygote
from tests.models.tiny_lm import CORPUS, SHORTLIST, SMALL, BackoffModel, checkpoint
from tests.networks.checkpoints import bengio_checkpoint, rnnlm_checkpoint
from tests.networks.networks import rnnlm_network, with_large_weights

WORDS = Vocabulary([b"<unk>", b"</s>", *(word.encode() for word in SHORTLIST)])


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    here = tmp_path_factory.mktemp("lm")
    model = rnnlm_network(words=len(WORDS), scale=0.7, dtype=torch.float32)
    save_model(here / "r1", rnnlm_checkpoint(model, WORDS))
    model = Bengio(BengioConfig(len(WORDS), 3, 3, 4), seed=None)
    save_model(here / "bengio", bengio_checkpoint(with_large_weights(model), WORDS))
    save_model(here / "cslm", checkpoint())
    few = rnnlm_network(words=4, scale=0.4, dtype=torch.float32)
    save_model(here / "few", rnnlm_checkpoint(few, Vocabulary([b"<unk>", b"</s>", b"le", b"bon"])))
    (here / "lm.arpa.gz").write_bytes(gzip.compress(SMALL.arpa()))
    (here / "other.arpa").write_bytes(SMALL.arpa().replace(b"chat", b"chien"))
    (here / "same.arpa").write_bytes(SMALL.arpa())
    (here / "dev.fr").write_bytes(b"\n".join(CORPUS) + b"\n\n")
    (here / "test.fr").write_bytes(b"le chat\nle rare le\n")
    (here / "words").write_bytes(b"rare jamais vu 10 km odd\n")
    return here


@pytest.fixture
def perplexity(prepared):
    def started(*arguments, code=0):
        done = zygote("cslm", "perplexity", *arguments, cwd=prepared)
        assert done.returncode == code, done.stderr
        return done.stdout.decode() if code == 0 else done.stderr

    return started


def figures(out):
    rows = [line.strip("| ").split(" | ") for line in out.splitlines() if line.startswith("| ")]
    return {row[0]: [float(cell) for cell in row[1:]] for row in rows[1:]}


def test_several_n_gram_models_know_the_same_words(perplexity):
    pytest.importorskip("kenlm")
    out = figures(perplexity("dev.fr", "--model", "cslm", "--lm", "lm.arpa", "--lm", "same.arpa"))
    assert out["lm.arpa"] == out["same.arpa"]
    error = perplexity("dev.fr", "--model", "r1", "--lm", "lm.arpa", "--lm", "other.arpa", code=3)
    assert "other.arpa: expected the words of lm.arpa.gz, found 2 different ones\n" in error


def test_even_shares_of_a_given_text_or_of_the_texts(perplexity):
    plain = figures(perplexity("test.fr", "--model", "r1"))["r1 (RNNLM)"][0]
    own = perplexity("test.fr", "--model", "r1", "--rare", "uniform")
    assert own.rstrip().endswith("test.fr: 7 tokens, 14.29% outside a shortlist")
    given = figures(perplexity("test.fr", "--model", "r1", "--rare", "uniform", "--vocabulary", "words"))["r1 (RNNLM)"][
        0
    ]
    # `rare` is one word of test.fr's, and one of the six of `words`
    assert given == pytest.approx(figures(own)["r1 (RNNLM)"][0] * 6 ** (1 / 7), abs=0.01)
    assert plain != figures(own)["r1 (RNNLM)"][0]


def test_words_in_no_vocabulary_share_as_one(perplexity, prepared):
    (prepared / "five").write_bytes(b"jamais vu 10 km odd\n")
    (prepared / "marked.fr").write_bytes(b"le chat\nle <unk> le\n")
    even = "--model", "r1", "--rare", "uniform"
    alone = figures(perplexity("test.fr", *even))["r1 (RNNLM)"][0]  # one word shares
    told = "\nTokens in no vocabulary: 1. They share as one word, like <unk> in an n-gram model.\n"
    for text, words, sharing in (("test.fr", ("--vocabulary", "five"), 6), ("marked.fr", (), 1)):
        out = perplexity(text, *even, *words)
        assert told in out
        assert figures(out)["r1 (RNNLM)"][0] == pytest.approx(alone * sharing ** (1 / 7), abs=0.01)
    (prepared / "blank").write_bytes(b"\n \n")
    refused = perplexity("test.fr", *even, "--vocabulary", "blank", code=3)
    assert "blank: expected a text with words, found none" in refused


def test_models_of_one_name_are_told_apart(perplexity, prepared):
    shutil.copytree(prepared / "r1", prepared / "again" / "r1", dirs_exist_ok=True)
    out = perplexity("test.fr", "--model", "r1", "--model", "again/r1")
    assert {"r1 (RNNLM)", "again/r1 (RNNLM)"} <= figures(out).keys()
    assert "| ./. (RNNLM)" not in perplexity("test.fr", "--model", "r1/.")


def test_words_of_other_shortlists_count(perplexity, prepared):
    def of_few(*arguments):
        return figures(perplexity(*arguments, "--model", "few"))["few (RNNLM)"][0]

    # outside are chat and rare of test.fr, beside the CSLM neuf too
    even = "test.fr", "--rare", "uniform"
    assert of_few(*even, "--model", "cslm") == pytest.approx(of_few(*even) * (3 / 2) ** (2 / 7), abs=0.02)
    pytest.importorskip("kenlm")
    (prepared / "never.fr").write_text("never\n")
    # neuf, which neither knows, takes half of what both give to unknown words
    beside = "never.fr", "--lm", "lm.arpa"
    assert of_few(*beside, "--model", "cslm") == pytest.approx(of_few(*beside) * 2 ** (1 / 2), abs=0.02)


def test_even_shares_beside_an_n_gram_model_are_of_its_words(perplexity):
    pytest.importorskip("kenlm")
    even = perplexity("test.fr", "--model", "r1", "--lm", "lm.arpa", "--rare", "uniform")
    backed_off = perplexity("test.fr", "--model", "r1", "--lm", "lm.arpa")
    assert figures(even)["lm.arpa"] == figures(backed_off)["lm.arpa"]
    sections = SMALL.arpa().partition(b"\\2-grams")[0].splitlines()
    words = {line.split(b"\t")[1] for line in sections if b"\t" in line}
    outside = len(words - set(WORDS.words) - {b"<s>"}) + 1
    one = figures(perplexity("test.fr", "--model", "r1", "--rare", "uniform"))["r1 (RNNLM)"][0]  # of one word outside
    assert outside > 1
    assert figures(even)["r1 (RNNLM)"][0] == pytest.approx(one * outside ** (1 / 7), abs=0.02)


@pytest.mark.parametrize("mode", ["word", "sentence"])
def test_dynamic_models_learn_from_each_text_anew(perplexity, mode):
    pytest.importorskip("kenlm")
    name = f"r1 (RNNLM, dynamic by {mode})"
    dynamic = "--dynamic", mode, "--dynamic-rate", "0.1", "--lm", "lm.arpa"
    both = perplexity("dev.fr", "dev.fr", "--model", "r1", "--model", "bengio", *dynamic)
    first, second = figures(both)[name]
    assert first == second
    static = figures(perplexity("dev.fr", "--model", "r1", "--model", "bengio", "--lm", "lm.arpa"))
    assert static["r1 (RNNLM)"][0] != first
    assert static["bengio (NPLM)"][0] == figures(both)["bengio (NPLM)"][0]
    still = figures(
        perplexity(
            "dev.fr", "--model", "r1", "--model", "bengio", "--dynamic", mode, "--dynamic-rate", "0", "--lm", "lm.arpa"
        )
    )
    assert still[name] == static["r1 (RNNLM)"]


def test_words_that_the_n_gram_model_does_not_know_share_its_unknown_word(perplexity, prepared):
    pytest.importorskip("kenlm")
    unigrams = {"</s>": 0.25, "le": 0.5, "<unk>": 0.25}
    (prepared / "few.arpa").write_bytes(BackoffModel(unigrams, {("le",): {"</s>": 0.5}}).arpa())
    strange = [word for word in SHORTLIST if word != "le"]
    (prepared / "strange.fr").write_text(f"{strange[0]} {strange[1]} never\n")
    for network in ("r1", "cslm"):
        out = perplexity("strange.fr", "--model", network, "--lm", "few.arpa")
        # three words of 0.25 / (1 + strange words), and the end
        expected = (0.25 * (0.25 / (1 + len(strange))) ** 3) ** (-1 / 4)
        assert f"{expected:.2f}" in out
        told = f"Shortlist words that the n-gram model does not know: {len(strange)}."
        assert told in " ".join(out.split())
    assert "does not know" not in perplexity("dev.fr", "--model", "r1")


def test_a_rate_that_is_too_high_is_named(perplexity):
    error = perplexity("dev.fr", "--model", "r1", "--dynamic", "sentence", "--dynamic-rate", "1e6", code=1)
    assert "dynamic evaluation diverged: expected log-probabilities above -1000, found -" in error
    assert "Use a lower --dynamic-rate than 1e+06." in error
    assert re.search(r"\n  It was reading sentence [12]: '.*'\n", error)
    assert error.endswith("\n  The model is r1 (RNNLM, dynamic by sentence), the text dev.fr.\n")


HEEDS_CTRL_C = """
import signal
from moses_rnn.cli.cslm import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # a script's background programs would ignore it
main(prog_name="moses-rnn cslm")
"""


def test_interrupted_it_says_so(prepared):
    os.mkfifo(prepared / "pipe")
    command = [sys.executable, "-c", HEEDS_CTRL_C, "perplexity", "pipe", "--model", "cslm"]
    with (
        subprocess.Popen(command, stderr=subprocess.PIPE, cwd=prepared) as process,
        (prepared / "pipe").open("wb"),  # which waits until it is read from
    ):
        process.send_signal(signal.SIGINT)
        messages = process.stderr.read()
    assert (process.returncode, messages) == (128 + signal.SIGINT, b"-c: interrupted\n")


def test_an_export_warns_of_what_a_decoder_would_misread_and_refuses_what_it_cannot(prepared):
    save_model(prepared / "far", checkpoint(scale=1000))
    odd = checkpoint()
    odd.target_vocabulary.words[2] = b"<null>"
    save_model(prepared / "odd", odd)
    done = [
        zygote("cslm", "export-nplm", output, "--model", model, "--dev", "dev.fr", cwd=prepared)
        for output, model in (("far.nplm", "far"), ("my cslm", "cslm"), ("odd.nplm", "odd"))
    ]
    assert [each.returncode for each in done] == [0, 0, 3]
    assert (
        "\nwarning: the scores are far from probabilities: train with --self-normalise 0.1, for example\n"
        in done[0].stderr
    )
    assert f"warning: {prepared / 'my cslm'}: Moses cannot read paths with blanks or '#'" in done[1].stderr
    assert "found '<null>'" in done[2].stderr
    assert not (prepared / "odd.nplm").exists()
