"""A training command as one of several processes, as torchrun starts them: the first one speaks for all."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from moses_rnn.cli.command import StopRequest, choose_device, say
from moses_rnn.errors import MosesRnnError
from moses_rnn.training.config import LearningRequest

if TYPE_CHECKING:
    from moses_rnn.training.ranks import Ranks

Request = TypeVar("Request", bound=LearningRequest)


@contextlib.contextmanager
def together() -> Iterator[Ranks]:
    """The processes that train together, of which this is one; by itself it is the only one.

    An error of one process ends all, and is said once.
    """
    from moses_rnn.training.processes import join
    from moses_rnn.training.ranks import PeerFailed

    ranks = join()
    try:
        yield ranks
    except MosesRnnError as error:
        if not ranks.report(error):
            sys.exit(error.exit_code)
        if not ranks.leads and not isinstance(error, PeerFailed):  # which says where it was seen
            error.message = f"process {ranks.rank} of {ranks.size}: {error.message}"
        raise
    except Exception as error:
        ranks.report(error)
        raise
    ranks.leave()


def of_rank(request: Request, ranks: Ranks) -> Request:
    """What is requested of one of the processes: it has a device of its own, and the first alone shows its progress.

    A training that torchrun has started again continues, also with --restart, which was meant the first time.
    """
    from moses_rnn.training.processes import restarts

    quiet = request.quiet or not ranks.leads
    if request.restart and restarts() and not quiet:
        say(f"--restart: left aside, since torchrun has started this training again ({restarts()})")
    device = choose_device(ranks.device(request.device))
    return replace(request, device=device, quiet=quiet, restart=request.restart and not restarts())


def stop_request(ranks: Ranks) -> StopRequest:
    """What stops the processes: a signal to any of them. With several, one signal may come by several ways."""
    return StopRequest(quiet=not ranks.leads, patient=ranks.size > 1)
