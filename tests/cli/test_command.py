"""What all commands share: the record of a command's options, and what stops one."""

import importlib
import mmap
import re
import signal

import click
import pytest
import torch
from click.testing import CliRunner

from moses_rnn.cli.command import StopRequest, reports_errors
from moses_rnn.cli.main import COMMANDS as NAMES
from moses_rnn.cli.main import main


def every_command():
    """Each command and subcommand, called as it is typed."""
    yield pytest.param(main, id="moses-rnn")
    for name in NAMES:
        program = importlib.import_module(f"moses_rnn.cli.{name}").main
        yield pytest.param(program, id=f"moses-rnn {name}")
        for sub, command in getattr(program, "commands", {}).items():
            yield pytest.param(command, id=f"moses-rnn {name} {sub}")


COMMANDS = [*every_command()]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_readable_ranges(command):
    text = CliRunner().invoke(command, ["--help"]).output
    assert "None" not in text
    assert not re.search(r"\d{9}", text)


NUMBERS = [
    pytest.param(command.values[0], parameter, id=f"{command.id} {parameter.opts[-1]}")
    for command in COMMANDS
    for parameter in command.values[0].params
    if isinstance(parameter, click.Option) and isinstance(parameter.type, click.IntRange)
]


@pytest.mark.parametrize(("command", "option"), NUMBERS)
def test_numbers_that_no_library_holds_are_refused(command, option):
    for number in ["9" * 20, *["100000", "1025"] * (option.name == "threads")]:
        done = CliRunner().invoke(command, [option.opts[-1], number])
        assert (done.exit_code, f"'{option.opts[-1]}': {number} is " in done.output) == (2, True), done.output
        assert "1<=x<=1024" in done.output or option.name != "threads"


SHORTAGES = {
    "Python": lambda: bytes(1 << 60),
    "torch": lambda: torch.empty(1 << 60),
    "the system": lambda: mmap.mmap(-1, 1 << 62),
}


@pytest.mark.parametrize("allocate", SHORTAGES.values(), ids=SHORTAGES)
def test_memory_that_runs_out_is_said_whoever_notices_it(capsys, allocate):
    with pytest.raises(SystemExit) as end:
        reports_errors(allocate)()
    assert (end.value.code, capsys.readouterr().err.endswith(": memory ran out\n")) == (1, True)


def test_a_patient_stop_request_outlives_a_second_signal(capsys):
    """As it comes from torchrun and from who stopped torchrun; one that is quiet says nothing."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
    before = [signal.getsignal(number) for number in numbers]
    try:
        for quiet in (False, True):
            stop = StopRequest(patient=True, quiet=quiet)
            assert not stop()
            for _ in range(2):
                signal.raise_signal(signal.SIGTERM)
            assert stop()
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
    assert capsys.readouterr().err.count(": stopping after saving what is done\n") == 1
