"""What all commands share: how options are read, memory that runs out, and what stops one."""

import mmap
import signal

import click
import pytest
import torch

from moses_rnn.cli.command import StopRequest, reports_errors
from moses_rnn.cli.main import main


def multiply():
    raise RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")


SHORTAGES = {
    "Python": lambda: bytes(1 << 60),
    "torch": lambda: torch.empty(1 << 60),
    "cuBLAS": multiply,
    "the system": lambda: mmap.mmap(-1, 1 << 62),
}


@pytest.mark.parametrize("allocate", SHORTAGES.values(), ids=SHORTAGES)
def test_memory_that_runs_out_is_said_whoever_notices_it(capsys, allocate):
    with pytest.raises(SystemExit) as end:
        reports_errors(allocate)()
    assert (end.value.code, capsys.readouterr().err.endswith(": out of memory\n")) == (1, True)


def test_a_patient_stop_request_outlives_a_second_signal(capsys):
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


def programs(command=main, name="moses-rnn"):
    if not isinstance(command, click.Group):
        return {name: command}
    context = click.Context(command)
    inner = {f"{name} {word}": command.get_command(context, word) for word in command.list_commands(context)}
    return {key: program for word, one in inner.items() for key, program in programs(one, word).items()}


PROGRAMS = programs()


def words_of(parameter, value):
    spelling = parameter.opts[:1] if isinstance(parameter, click.Option) else []
    return spelling + [value] * max(parameter.nargs, 1)


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_value_is_lost_to_a_second_one(name):
    program = PROGRAMS[name]
    of_value = [one for one in program.params if isinstance(one, click.Option) and not one.is_flag]
    for option in of_value:
        twice = 2 * words_of(option, "1")
        if option.multiple:
            assert len(program.make_parser(click.Context(program)).parse_args(twice)[0][option.name]) == 2
        else:
            with pytest.raises(click.UsageError, match=f"{option.opts[-1]} takes one value") as error:
                program.make_context(name, twice)
            assert error.value.exit_code == 2


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_value_may_be_empty(name):
    """As it is where a variable of the shell is not set."""
    program, before = PROGRAMS[name], []
    for parameter in program.params:
        if not parameter.opts or getattr(parameter, "is_flag", False):
            continue
        with pytest.raises(click.UsageError) as error:
            program.make_context(name, [*before, *words_of(parameter, "")])
        message = error.value.format_message()
        assert parameter.get_error_hint(click.Context(program)) in message, message
        assert error.value.exit_code == 2
        before += words_of(parameter, "1") if isinstance(parameter, click.Argument) else []
