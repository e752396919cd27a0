import subprocess
import sys
from pathlib import Path

import pytest

from moses_rnn.errors import InputError
from moses_rnn.moses.tokenising import tokenise_lines
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


def test_lines_end_at_line_feeds_only():
    """Else a text and its translation would be of different length."""
    lines = list(tokenise_lines([b"a\rb\n", b"c\x0bd\x0ce\xe2\x80\xa8f\n"], "text", language="en"))
    assert lines == [b"a b\n", b"c d e f\n"]


def test_what_is_not_utf_8_is_named():
    with pytest.raises(InputError, match=r"^text:2: expected UTF-8, found '\\xff'$"):
        list(tokenise_lines([b"fine\n", b"\xff\n"], "text", language="en"))
    done = zygote("tokenise", given=b"fine\n\xff\n")
    assert (done.returncode, done.stdout) == (3, b"")
    assert done.stderr == "moses-rnn-tokenise: standard input:2: expected UTF-8, found '\\xff'\n"


def test_nothing_becomes_nothing():
    assert run("tokenise").stdout == ""
