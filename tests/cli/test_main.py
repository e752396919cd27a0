"""All commands under one name; what the shell completes."""

import os
import signal
import subprocess
import sys

import pytest
from click.shell_completion import ShellComplete

from moses_rnn.cli.main import main
from tests.commands import PROGRAMS, program, run

MODULE = [sys.executable, "-m", "moses_rnn"]


INTERRUPTED = """
import os, signal, sys
os.kill(os.getpid(), signal.SIGINT)
sys.exit("Ctrl-C was lost")
"""


@pytest.mark.parametrize(
    "command", [*map(program, ("", *sorted(PROGRAMS))), MODULE], ids=lambda command: str(command[0])
)
def test_ctrl_c_ends_a_program_that_starts(tmp_path, command):
    (tmp_path / "click.py").write_text(INTERRUPTED)
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a script's background programs ignore it
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_messages_name_the_command(tmp_path):
    done = run("", "score", "nowhere", cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr.partition(":")[0]) == (3, "moses-rnn score")
    command = [*MODULE, "nbest", "rerank", "nowhere", "weights"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.partition(":")[0]) == (3, "moses-rnn nbest")


PRESSED = {  # what bash would put in place of the last word
    "moses-rnn s": ["score", "sample"],
    "moses-rnn nbest t": ["tune"],
    "moses-rnn score --moses": ["--moses-ini"],
    "moses-rnn score --precision b": ["bf16"],
}
TAB = """
COMPREPLY=(); COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
"$function" moses-rnn "${{COMP_WORDS[COMP_CWORD]}}" ""
echo "${{COMPREPLY[@]}}"
"""


def test_bash_completes_commands_options_and_choices(tmp_path):
    shim = tmp_path / "moses-rnn"
    shim.write_text(f'#!/bin/sh\nexec {sys.executable} -m moses_rnn "$@"\n')
    shim.chmod(0o755)
    script = """
        eval "$(_MOSES_RNN_COMPLETE=bash_source moses-rnn)"
        function=$(complete -p moses-rnn | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
    """ + "".join(TAB.format(line=line) for line in PRESSED)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, env=environment)
    assert [sorted(line.split()) for line in done.stdout.splitlines()] == [sorted(words) for words in PRESSED.values()]


@pytest.mark.parametrize("line", ["score phrase", "score --model phr", "analyse targets phr", "cslm train tr"])
def test_names_of_files_are_left_to_the_shell(line):
    *before, incomplete = line.split()
    (item,) = ShellComplete(main, {}, "moses-rnn", "_MOSES_RNN_COMPLETE").get_completions(before, incomplete)
    assert (item.type, item.value) == ("file", incomplete)
