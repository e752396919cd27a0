"""moses-rnn-cslm perplexity of a CSLM, alone and with an n-gram model; of several models: test_cslm_perplexity."""

import gzip
import os
import signal
import subprocess
import sys

import pytest

from tests.cli.cslm.calls import cslm, sentences
from tests.commands import program
from tests.producers.tiny_lm import SMALL

HEAD = "| text | tokens | outside the shortlist | CSLM, shortlist only |"


def cells(line):
    return line.strip("| ").split(" | ")


def test_perplexity_of_a_cslm_alone(here):
    code, out, messages = cslm("perplexity", "cslm", "dev.fr", "train.fr")
    assert (code, messages) == (0, "")
    head, rule, dev, train = out.splitlines()
    assert (head, rule) == (HEAD, "|---|---|---|---|")
    lines = sentences(20, 2)
    tokens = len(" ".join(lines).split(" ")) + 20  # each line has one rare word and an end
    assert cells(dev)[:3] == ["dev.fr", f"{tokens:,}", f"{20 / tokens:.2%}"]
    assert 1 < float(cells(dev)[3]) < 20
    assert cells(train)[0] == "train.fr"


def test_perplexities_with_an_n_gram_model(here):
    pytest.importorskip("kenlm", reason="kenlm is not installed: pip install 'moses-rnn[lm]'")
    code, out, messages = cslm("perplexity", "cslm", "dev.fr", "train.fr", "--lm", "lm.arpa")  # found as lm.arpa.gz
    assert (code, messages) == (0, "")
    head, _, dev, train, empty, last, _, *strange = out.splitlines()
    assert head.startswith(HEAD + " CSLM | n-gram model | both (")
    assert head.endswith(" CSLM) | gain | both, known words only |")
    shortlist_only, network, n_gram, both = map(float, cells(dev)[3:7])
    assert shortlist_only < network
    assert both <= min(network, n_gram)
    assert (cells(train)[0], empty) == ("train.fr", "")
    # outside: <unk> and `rare`, 0.1 and 0.15
    assert last == (
        "The weight is the best for dev.fr. Outside the shortlist: 2 words of the n-gram model, <unk> among them, "
        "with a mass of 0.2500 without context."
    )
    assert " ".join(strange).startswith("Words of the shortlists that the n-gram model does not know: 3. They, ")


def test_perplexity_of_standard_input(here):
    pytest.importorskip("kenlm", reason="kenlm is not installed: pip install 'moses-rnn[lm]'")
    arguments = ["perplexity", "cslm", "--lm", "lm.arpa.gz"]
    data = gzip.compress((here / "dev.fr").read_bytes())
    done = subprocess.run([program("cslm"), *arguments, "-"], input=data, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    _, out, _ = cslm(*arguments, "dev.fr")
    assert done.stdout.decode() == out.replace("| dev.fr |", "| - |").replace("best for dev.fr.", "best for -.")


HEEDS_CTRL_C = """
import signal
from moses_rnn.cli.cslm import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # a script's background programs would ignore it
main(prog_name="moses-rnn-cslm")
"""


def test_interrupted_it_says_so(here):
    os.mkfifo(here / "pipe")
    command = [sys.executable, "-c", HEEDS_CTRL_C, "perplexity", "cslm", "pipe"]
    with (
        subprocess.Popen(command, stderr=subprocess.PIPE) as process,
        (here / "pipe").open("wb"),  # which waits until it is read from
    ):
        process.send_signal(signal.SIGINT)
        messages = process.stderr.read()
    assert (process.returncode, messages) == (128 + signal.SIGINT, b"-c: interrupted\n")


LMS = [
    (SMALL.arpa()[:-40], "lm: expected a language model that KenLM reads, found: Was expecting n-gram header"),
    (b"le chat\n", "lm: expected a language model that KenLM reads, found: first non-empty line was not \\data\\"),
    (SMALL.arpa().replace(b"-1.0000000\t<unk>", b"-99\t<unk>"), "lm: expected a model that gives <unk> a probability, found 1e-99\n"),
    (SMALL.arpa().replace(b"le chat", b"<unk> chat"), "lm: expected no n-gram with <unk>, found '<unk> chat'\n"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "message"), LMS, ids=["cut", "text", "no <unk>", "<unk>"])
def test_n_gram_models_that_cannot_be_used(here, data, message):
    pytest.importorskip("kenlm", reason="kenlm is not installed: pip install 'moses-rnn[lm]'")
    (here / "lm").write_bytes(data)
    code, out, messages = cslm("perplexity", "cslm", "dev.fr", "--lm", "lm")
    assert (code, out) == (3, "")
    assert messages.startswith(f"moses-rnn-cslm: {message}")


def test_an_n_gram_model_needs_kenlm(here, monkeypatch):
    monkeypatch.setitem(sys.modules, "kenlm", None)  # as if it were not installed
    code, _, messages = cslm("perplexity", "cslm", "dev.fr", "--lm", "lm.arpa")
    assert (code, messages.startswith("moses-rnn-cslm: kenlm is not installed: pip install 'moses-rnn[lm]' (")) == (
        1,
        True,
    )
