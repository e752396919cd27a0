"""moses-rnn-tokenise: the bytes of sacremoses, from stdin to stdout."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import run, zygote

TEXT = (
    "Don't stop -- Mr. Smith's [old] dog & cat cost $3.50 | each, <b>isn't</b> it?\n"
    "\n"
    "  L'homme d'aujourd'hui : « c'est-à-dire » 1 000,5 %…\t\x85tab \u2028 end\n"
    "日本語 mixed text.\r\n"
    "no line feed at the end"
)


@pytest.mark.parametrize("language", ["en", "fr", "ja"])
def test_the_bytes_are_those_of_sacremoses(tmp_path, language):
    program = Path(sys.executable).with_name("sacremoses")
    words = [program, "-l", language, "-j", "1", "-q", "tokenize"]
    expected = subprocess.run(words, input=TEXT.encode(), capture_output=True, check=True).stdout
    for processes in (1, 2):
        done = zygote("tokenise", "--language", language, "--processes", processes, given=TEXT.encode())
        assert (done.returncode, done.stdout) == (0, expected)


def test_nothing_becomes_nothing():
    assert run("tokenise").stdout == ""


def test_an_empty_last_line_or_none_stays_so():
    for text in ("a b\n\n", "a b\n", "a b"):
        assert run("tokenise", given=text).stdout.count("\n") == max(text.count("\n"), 1)
