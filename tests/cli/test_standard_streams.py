"""Closed, full and broken standard streams, other locales, and what could command a terminal."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import run, spoken, zygote

BIN = Path(sys.executable).parent
COMMANDS = ["score", "analyse"]  # a program of its own, and a group; all others are of these two kinds


def shell(line, cwd=None, **variables):
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", **variables}
    return subprocess.run(["bash", "-c", line], capture_output=True, cwd=cwd, env=environment, check=False)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("redirection", "message"),
    [
        (">/dev/full", b"standard output: No space left on device"),
        (">&-", b"standard output: is closed (redirect it to /dev/null to discard it)"),
    ],
)
def test_output_that_cannot_be_written_is_a_failure(command, redirection, message):
    done = shell(f"{spoken(command)} --help {redirection}")
    assert (done.returncode, done.stderr.startswith(b"moses-rnn")) == (1, True)
    assert done.stderr.endswith(b": %s\n" % message)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("python", ["", "1"])
def test_a_reader_that_goes_away_is_no_cause_for_noise(command, python):
    done = shell(
        f"(sleep 1; {spoken(command)} --help; echo $? >&2) | true", PYTHONUNBUFFERED=python
    )  # `true` ends at once
    assert done.stderr == b"1\n"


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("redirection", ["<&-", "2>&-", "2>/dev/full", "<&- 2>&-"])
def test_other_streams_do_not_matter_to_help(command, redirection):
    done = shell(f"{spoken(command)} --help {redirection}")
    assert (done.returncode, done.stdout[:7]) == (0, b"Usage: ")


@pytest.mark.parametrize("redirection", [">/dev/full", "| true"])
def test_a_table_to_a_pipe_that_breaks_is_a_failure(here, redirection):
    done = shell(f"(moses-rnn-score phrase-table.gz -o - -q; echo $? >&2) {redirection}", here)
    assert done.stderr.endswith(b"1\n")
    assert b"Traceback" not in done.stderr
    assert sorted(os.listdir(here)) == ["phrase-table.gz", "phrase-table.rnn-model"]


@pytest.mark.parametrize("output", ["-o -", "-"])
def test_a_table_without_its_suffix_goes_to_standard_output_too(here, output):
    done = shell(f"moses-rnn-score phrase-table {output} --model phrase-table.rnn-model -q", here)
    assert (done.returncode, done.stdout.count(b"\n")) == (0, 3000)
    assert sorted(os.listdir(here)) == ["phrase-table.gz", "phrase-table.rnn-model"]


@pytest.mark.parametrize("command", ["score - --model phrase-table.rnn-model", "validate -", "tokenise"])
def test_a_closed_standard_input_is_said(here, command):
    done = shell(f"{spoken(command)} <&-", here)
    assert (done.returncode, done.stdout) == (3, b"")
    assert done.stderr == f"moses-rnn {command.split()[0]}: standard input: is closed\n".encode()


def test_closed_streams_are_not_taken_by_files(here):
    """Without care the table would be opened as descriptor 2, and a message would be written into it."""
    done = shell("moses-rnn-score phrase-table.gz -o t.gz <&- 2>&-", here)
    assert (done.returncode, done.stderr) == (0, b"")
    assert shell("gzip -t t.gz && zcat t.gz | wc -l", here).stdout == b"3000\n"


def test_the_same_bytes_under_any_locale_and_for_any_file_name(here):
    feature = f"PhraseDictionaryMemory name=T num-features=4 path={here}/phrase-table.gz # né"
    (here / "ini").write_text(f"[feature]\n{feature}\n[weight]\nT= 1 1 1 1\n", encoding="utf-8")
    output = "-o $'t\\xff\\xc3\\xa9.gz' --moses-ini ini --output-ini $'i\\xff'"
    line = f"moses-rnn-score phrase-table.gz {output} -q --force && cat t*.gz i*"
    locales = (
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "de_DE.UTF-8", "PYTHONIOENCODING": "latin-1"},
    )
    undisturbed, *others = (shell(line, here, **variables) for variables in ({}, *locales))
    assert b"t\xff\xc3\xa9.gz" in undisturbed.stdout
    for done in others:
        assert (done.returncode, b"moses-rnn" in done.stderr) == (0, False), done.stderr
        assert done.stdout == undisturbed.stdout
    refused = shell(line.replace("--force", ""), here, **locales[0])
    assert rb"moses-rnn-score: t\udcff" in refused.stderr  # the message names the file
    assert b".gz: already exists" in refused.stderr


def test_what_could_command_a_terminal_is_escaped(here):
    (here / "t").write_bytes(b"a ||| \x1b[31m ||| \x1b]0;x\x07\n")
    done = shell("moses-rnn-score t --model phrase-table.rnn-model -o \x1b[1m.gz", here)
    assert done.returncode == 3
    assert b"\x1b" not in done.stderr
    (here / "scored").write_bytes(b"a \x1b[31m ||| \x1b]0;x\x07\xff ||| 1 1 1 1 1 ||| 0-0 ||| 1 x 1\n" * 3)
    done = shell("moses-rnn analyse targets scored --column 4 --source $'a \\x1b[31m'", here)
    assert done.returncode == 0, done.stderr
    assert b"\x1b" not in done.stdout
    assert b"a \\x1b[31m   (3 targets)" in done.stdout


def test_advice_about_a_table_from_a_pipe_names_a_command_that_works(here):
    table = b"".join(b"x%d ||| y%d ||| 1 1 1 1\n" % (i, i) for i in range(9))  # of unknown words
    (here / "it's").write_bytes(table)
    by_name = {"-": "TABLE", "it's": "'it'\"'\"'s'"}
    for name, named in by_name.items():
        done = zygote("score", name, "--model", "phrase-table.rnn-model", "-o", "-", cwd=here, given=table)
        assert done.returncode == 3
        assert f"Make one with: moses-rnn-train {named}\n" in done.stderr
    done = run("train", "-", cwd=here, check=False, given="")
    assert (done.returncode, "more than once" in done.stderr) == (3, False)


def test_of_a_table_without_its_model_only_scoring_is_advised_to_add_a_column(here):
    run("score", "phrase-table.gz", "-o", "named.gz", "-q", cwd=here)
    assert "--again" in run("score", "named.gz", cwd=here, check=False).stderr
    done = run("analyse", "explain", "named.gz", "a ||| b", cwd=here, check=False)
    assert (done.returncode, "Name the table's model with --model." in done.stderr) == (3, True)
    assert "--again" not in done.stderr
