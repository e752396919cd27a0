"""What commands print is as wide as the terminal; examples below their help are still the same commands."""

import contextlib
import fcntl
import gzip
import io
import os
import pty
import re
import shlex
import shutil
import signal
import struct
import sys
import termios
import threading

import pytest

from moses_rnn.cli.widths import fitted, folded
from tests.cli.every_command import COMMANDS
from tests.conftest import EXAMPLES, TINY


def commands_in(text):
    """The words of each line that calls a program, its continuations joined."""
    joined = re.sub(r" *\\\n +", " ", text)
    return [
        shlex.split(line, comments=True)
        for line in joined.splitlines()
        if re.match(r"  +\S*(moses|torchrun|zcat)\S* ", line)
    ]


@pytest.mark.parametrize("width", [60, 76, 98])
@pytest.mark.parametrize("name", COMMANDS)
def test_examples_are_the_same_at_any_width(name, width):
    epilog = COMMANDS[name].epilog
    text = fitted(epilog, width)
    raw = [paragraph for paragraph in re.split(r"\n\s*\n", text) if paragraph.startswith("\b")]
    assert all(len(line) <= width or " " not in line.strip() for paragraph in raw for line in paragraph.splitlines())
    assert commands_in(text) == commands_in(epilog)


def test_prose_is_filled_and_rows_hang():
    text = "\b\nExample: one\nand two three:\n  moses-rnn-x a --b 'c d' > e\n  row of a table\n\nfilled by click"
    assert fitted(text, 18).splitlines() == [
        "\b",
        "Example: one and",
        "two three:",
        "  moses-rnn-x a \\",
        "      --b 'c d' \\",
        "      > e",
        "  row of a table",
        "",
        "filled by click",
    ]
    assert fitted("\b\n  some row of a table", 14).splitlines() == ["\b", "  some row of", "      a table"]


# --- on a terminal ------------------------------------------------------------------------------------------------------


class Terminal:
    """A terminal that standard output and standard error lead to, and what was written to it."""

    def __init__(self, columns):
        self._there, here = pty.openpty()
        fcntl.ioctl(here, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.stream = os.fdopen(here, "w", encoding="utf-8")
        self._written = bytearray()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        with contextlib.suppress(OSError):  # the other end was closed
            while data := os.read(self._there, 4096):
                self._written += data

    def lines(self):
        """All lines; of a bar each state."""
        self.stream.close()
        self._reader.join()
        os.close(self._there)
        return re.split("[\r\n]+", re.sub("\x1b\\[[0-9;]*[A-Za-z]", "", self._written.decode()))


def printed(monkeypatch, columns, command, *arguments):
    """What a command prints on a terminal."""
    terminal = Terminal(columns)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)}
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", terminal.stream)
        patch.setattr(sys, "stderr", terminal.stream)
        patch.setattr(sys, "argv", [command])
        patch.setenv("COLUMNS", str(columns))
        with pytest.raises(SystemExit) as end:
            COMMANDS[command].main(list(map(str, arguments)), prog_name=command)
    for number, handler in handlers.items():  # which some commands replace
        signal.signal(number, handler)
    lines = terminal.lines()
    assert end.value.code == 0, lines
    return lines


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_no_wider_than_the_terminal(command, monkeypatch):
    name, _, sub = command.partition(" ")
    for columns in (80, 100):
        widths = [len(line) for line in printed(monkeypatch, columns, name, *sub.split(), "--help")]
        assert max(widths) <= columns
        assert columns == 80 or max(widths) > 76


@pytest.fixture(scope="module")
def scored(tmp_path_factory, table, model):
    here = tmp_path_factory.mktemp("a folder of which the name is as long as those that people have")
    shutil.copy(table, here)
    (here / "few").write_bytes(b"".join(gzip.decompress(table.read_bytes()).splitlines(keepends=True)[:200]))
    shutil.copytree(model, here / "phrase-table.rnn-model")
    (here / "moses.ini").write_text((EXAMPLES / "moses.ini").read_text())
    return here


def test_what_commands_say_is_no_wider_than_the_terminal(scored, monkeypatch):
    monkeypatch.chdir(scored)
    table, model = "phrase-table.rnn.gz", "phrase-table.rnn-model"
    pair = ", a bad baker wants ||| , un mauvais boulanger veut"
    lines_of = {
        words: printed(monkeypatch, 80, *words)
        for words in [
            ("moses-rnn-train", "few", "--preset", "small", *TINY, "--max-epochs", "2", "--evaluate-every", "100"),
            ("moses-rnn-score", "phrase-table.gz", "--moses-ini", "moses.ini", "--relative-paths", "--allow-misfit"),
            ("moses-rnn-validate", table),
            ("moses-rnn-validate", table, "--quick"),
            ("moses-rnn-verify", table, "--moses-ini", "moses.rnn.ini", "--no-decoder"),
            ("moses-rnn-sample", model, "--source", "in front of this", "--samples", "5"),
            ("moses-rnn-analyse", "summary", table),
            ("moses-rnn-analyse", "explain", model, table, pair, "--moses-ini", "moses.rnn.ini", "--phrases", "50"),
            ("moses-rnn-analyse", "targets", table, "--min-words", "2", "--min-targets", "1"),
            ("moses-rnn-analyse", "gates", model, table, "--phrases", "50"),
            ("moses-rnn-analyse", "prune", table, "-o", "pruned.gz", "--keep", "0.9"),
        ]
    }
    for words, lines in lines_of.items():
        wide = [line for line in lines if len(line) > 80 and not line.startswith("PhraseDictionaryMemory ")]
        assert not wide, words
    train, score, *_ = lines_of.values()
    assert "     pairs  epochs      time  held-out nats  perplexity  clipped  tokens/s" in train
    assert any(line.startswith("PhraseDictionaryMemory ") and line.endswith("=0") for line in score)  # to be copied


def test_elsewhere_messages_are_lines_as_they_are():
    text = "a " * 60
    assert folded(text, io.StringIO()) == text


def test_a_command_in_a_message_can_be_copied(monkeypatch):
    terminal = Terminal(60)
    make = (
        "make it with:\n  $MOSES_ROOT/bin/CreateProbingPT --num-scores 5 --input-pt phrase-table.rnn.gz --output-dir x"
    )
    lines = folded(make, terminal.stream).split("\n")
    terminal.lines()
    assert lines[1].endswith(" \\")
    assert max(map(len, lines)) <= 60
