"""moses-rnn tokenise: the bytes of sacremoses, from stdin to stdout."""

import os
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
    done = zygote("tokenise", "--language", language, given=TEXT.encode())
    assert (done.returncode, done.stdout) == (0, expected)


def test_two_processes_write_the_same(tmp_path):
    alone = run("tokenise", given=TEXT)
    assert run("tokenise", "--processes", 2, given=TEXT, env=os.environ).stdout == alone.stdout


@pytest.mark.parametrize(
    ("language", "known"), [("en", True), ("de", True), ("EN", False), ("english", False), ("qq", False)]
)
def test_an_unknown_language_is_a_warning_and_has_the_abbreviations_of_english(language, known):
    done = run("tokenise", "-l", language, given="Mr. Kor'an bzw. Ein\n")
    assert done.stdout.startswith("Mr. ")
    assert ("bzw. Ein" in done.stdout) == (language == "de")
    assert "Kor &apos;an" in done.stdout if language == "en" else "Kor &apos; an" in done.stdout
    if known:
        assert done.stderr == ""
    else:
        assert f"warning: language {language!r} has no list of abbreviations" in done.stderr


@pytest.mark.parametrize(
    ("language", "raw"), [("en", "Don't [stop] -- it's 5 % & more."), ("fr", "L'homme d'à côté\xa0: «\xa0oui\xa0»")]
)
def test_words_become_raw_text_again(language, raw):
    words = run("tokenise", "-l", language, given=f"{raw}\n\n").stdout
    assert words.split("\n")[0] != raw
    program = Path(sys.executable).with_name("sacremoses")
    options = [program, "-l", language, "-j", "1", "-q", "detokenize"]
    expected = subprocess.run(options, input=words.encode(), capture_output=True, check=True).stdout
    done = zygote("tokenise", "--language", language, "--reverse", given=words.encode())
    assert (done.returncode, done.stdout) == (0, expected)


def test_an_empty_last_line_or_none_stays_so():
    for text in ("a b\n\n", "a b\n", "a b"):
        assert run("tokenise", given=text).stdout.count("\n") == max(text.count("\n"), 1)


def test_lines_end_at_line_feeds_only_and_what_is_not_utf_8_is_named():
    """Else a text and its translation would be of different length."""
    done = zygote("tokenise", given=b"a\rb\nc\x0bd\x0ce\xe2\x80\xa8f\n")
    assert done.stdout == b"a b\nc d e f\n"
    done = zygote("tokenise", given=b"fine\n\xff\n")
    assert (done.returncode, done.stdout) == (3, b"")
    assert done.stderr == "moses-rnn tokenise: standard input:2: expected UTF-8, found '\\xff'\n"
