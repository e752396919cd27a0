"""What workers in other processes are told: to translate blocks of lines."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch

from moses_rnn.pools.request import PoolRequest
from moses_rnn.producers.ensembles import Ensemble, Writer
from moses_rnn.producers.open import ModelOnDisk
from moses_rnn.translation.request import TranslationRequest, make_stepper, make_translator
from moses_rnn.translation.translate import Counts, Translation, Words

Translated = tuple[list[Translation], Counts]


@dataclass(frozen=True)
class TranslationJob:
    """Models and choices; `threads` are torch's, of each worker. Jobs are told apart by `name` alone."""

    request: TranslationRequest = field(compare=False)
    models: tuple[ModelOnDisk, ...] = field(compare=False)
    combination: str | None = field(compare=False)  # None: there is one model
    threads: int = field(default=1, compare=False)
    name: str = field(default_factory=lambda: uuid.uuid4().hex)

    @classmethod
    def of(cls, request: TranslationRequest, model: Writer, threads: int) -> TranslationJob:
        """The job of a request by an open model."""
        combination = model.combination if isinstance(model, Ensemble) else None
        alone = replace(request, pool=PoolRequest())
        return cls(alone, tuple(map(ModelOnDisk.of, model.models)), combination, threads)

    def begin(self, place: str) -> Callable[[Sequence[Words]], Translated]:
        """Open the models on the device of that name."""
        torch.set_num_threads(self.threads)
        models = [model.open_again() for model in self.models]
        model: Writer = models[0] if self.combination is None else Ensemble(models, self.combination)
        request = replace(self.request, compute=replace(self.request.compute, device=place))
        translator = make_translator(request, model, make_stepper(request, model))

        def translate(block: Sequence[Words]) -> Translated:
            translator.counts = Counts()
            return translator.translate(block), translator.counts

        return translate
