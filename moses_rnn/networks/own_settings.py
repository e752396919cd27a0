"""Compute with torch's and numpy's default settings, whatever the caller's are, and restore the caller's afterwards.

Python users may call from within ``torch.autocast``, under float64 defaults, on a default GPU or in a forked process.
None of this may change a result.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch

Setting = tuple[Callable[[], Any], Callable[[Any], object], Any]  # how to read it, how to change it, our value


class ProcessSettings:
    """Settings of the whole process, as a context manager.

    Calls may overlap in several threads: the first to begin changes the settings, the last to end restores them.
    """

    forked = False  # whether this process was forked from one that had imported this module

    def __init__(self, settings: Callable[[], Iterator[Setting]]) -> None:
        self._settings = settings
        self._begin()
        os.register_at_fork(after_in_child=self._begin_in_fork)

    def _begin(self) -> None:
        self._lock, self._inside, self._restore = threading.Lock(), 0, contextlib.ExitStack()

    def _begin_in_fork(self) -> None:
        ProcessSettings.forked = True
        self._begin()  # another thread of the parent may have had the lock

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                for read, change, ours in self._settings():
                    if (theirs := read()) != ours:
                        change(ours)
                        self._restore.callback(change, theirs)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._restore.close()


def _of_products() -> Iterator[Setting]:
    if ProcessSettings.forked:  # OpenMP's threads do not survive a fork, and torch would wait for them forever
        yield torch.get_num_threads, torch.set_num_threads, 1
    if not hasattr(torch.backends.mkldnn, "matmul"):  # torch before 2.9
        yield torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "highest"
        return
    for backend in (torch.backends.mkldnn.matmul, torch.backends.cuda.matmul):
        yield partial(getattr, backend, "fp32_precision"), partial(setattr, backend, "fp32_precision"), "ieee"


def _of_training() -> Iterator[Setting]:
    yield torch.get_default_dtype, torch.set_default_dtype, torch.float32
    yield torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly, False


_PRODUCTS, _TRAINING = ProcessSettings(_of_products), ProcessSettings(_of_training)


@contextlib.contextmanager
def own_settings() -> Iterator[None]:
    """Use the default settings in this thread, and in those that it starts, for all but training."""
    with (
        _PRODUCTS,
        torch.autocast("cpu", enabled=False),
        torch.autocast("cuda", enabled=False),
        torch.inference_mode(mode=False),
        torch.enable_grad(),
        torch.device("cpu"),
        np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"),
    ):
        yield


@contextlib.contextmanager
def training_settings() -> Iterator[None]:
    """Use the default settings for training, which may also change torch's number of threads."""
    threads = torch.get_num_threads()
    with own_settings(), _TRAINING:
        try:
            yield
        finally:
            torch.set_num_threads(threads)
