"""moses-rnn cslm perplexity of a CSLM, alone and with an n-gram model; of several models: test_cslm_perplexity."""

import gzip
import os
import signal
import subprocess
import sys

import pytest

from tests.cli.cslm.calls import cslm
from tests.commands import program


def test_perplexity_of_standard_input(here):
    pytest.importorskip("kenlm", reason="kenlm is not installed: pip install 'moses-rnn[lm]'")
    arguments = ["perplexity", "--model", "cslm", "--lm", "lm.arpa.gz"]
    data = gzip.compress((here / "dev.fr").read_bytes())
    done = subprocess.run([*program("cslm"), *arguments, "-"], input=data, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    _, out, _ = cslm(*arguments, "dev.fr")
    assert done.stdout.decode() == out.replace("| dev.fr |", "| - |").replace("best for dev.fr.", "best for -.")


HEEDS_CTRL_C = """
import signal
from moses_rnn.cli.cslm import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # a script's background programs would ignore it
main(prog_name="moses-rnn cslm")
"""


def test_interrupted_it_says_so(here):
    os.mkfifo(here / "pipe")
    command = [sys.executable, "-c", HEEDS_CTRL_C, "perplexity", "pipe", "--model", "cslm"]
    with (
        subprocess.Popen(command, stderr=subprocess.PIPE) as process,
        (here / "pipe").open("wb"),  # which waits until it is read from
    ):
        process.send_signal(signal.SIGINT)
        messages = process.stderr.read()
    assert (process.returncode, messages) == (128 + signal.SIGINT, b"-c: interrupted\n")


def test_an_n_gram_model_needs_kenlm(here, monkeypatch):
    monkeypatch.setitem(sys.modules, "kenlm", None)  # as if it were not installed
    code, _, messages = cslm("perplexity", "dev.fr", "--model", "cslm", "--lm", "lm.arpa")
    assert (code, messages.startswith("moses-rnn cslm: kenlm is not installed: pip install 'moses-rnn[lm]' (")) == (
        1,
        True,
    )
