"""Where and how a model computes that Python code has loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from moses_rnn.api.arguments import check_choice, check_range
from moses_rnn.models.hardware import choose_device, choose_precision
from moses_rnn.native import MOST_THREADS
from moses_rnn.producers.base import PRECISIONS, Compute, Wanted
from moses_rnn.producers.open import OpenModel

CHOICES = ("auto", *PRECISIONS)


@dataclass(frozen=True)
class Options:
    """What the user chose, checked; `threads` is None where torch decides."""

    device: str
    precision: str
    threads: int | None

    @classmethod
    def checked(cls, device: str | torch.device, precision: str, threads: int | None) -> Options:
        """The choices of a user.

        Raises:
            ArgumentError: one of them is not possible; it is named.
        """
        count = None if threads is None else check_range("threads", threads, most=MOST_THREADS)
        return cls(choose_device(str(device), "device"), check_choice("precision", precision, CHOICES), count)

    @property
    def threads_or_all(self) -> int:
        """How many threads compute."""
        return self.threads or torch.get_num_threads()

    def scoring(self, models: Sequence[OpenModel]) -> Compute:
        """How pairs are scored: by the native core where it has the network, as moses-rnn-score does."""
        width = max(model.checkpoint.model.config.width for model in models)
        precision = choose_precision(self.precision, self.device, width)
        if len(models) == 1 and models[0].core_for(Wanted(self.device), precision):
            return Compute(self.device, precision, native=True)
        return Compute(self.device, precision)

    def writing(self, models: Sequence[OpenModel]) -> Compute:
        """How a network writes: by torch."""
        return Compute(self.device, self.scoring(models).precision)
