"""What all commands share: memory that runs out, and what stops one."""

import mmap
import signal

import pytest
import torch

from moses_rnn.cli.command import StopRequest, reports_errors

SHORTAGES = {
    "Python": lambda: bytes(1 << 60),
    "torch": lambda: torch.empty(1 << 60),
    "the system": lambda: mmap.mmap(-1, 1 << 62),
}


@pytest.mark.parametrize("allocate", SHORTAGES.values(), ids=SHORTAGES)
def test_memory_that_runs_out_is_said_whoever_notices_it(capsys, allocate):
    with pytest.raises(SystemExit) as end:
        reports_errors(allocate)()
    assert (end.value.code, capsys.readouterr().err.endswith(": out of memory\n")) == (1, True)


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
