"""What workers in other processes are told: to translate blocks of lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from moses_rnn.producers.base import Compute
from moses_rnn.producers.ensembles import Ensemble, Writer
from moses_rnn.producers.open import ModelOnDisk
from moses_rnn.translation.beam_search import BeamConfig
from moses_rnn.translation.translate import Counts, Translation, Translator, Words

Translated = tuple[list[Translation], Counts]


@dataclass(frozen=True)
class TranslationJob:
    """Models and choices; `aligned` see `Translator`, `threads` are torch's, of each worker."""

    models: tuple[ModelOnDisk, ...]
    combination: str | None  # None: there is one model
    beam: BeamConfig
    compute: Compute
    aligned: int
    threads: int = 1

    @classmethod
    def of(cls, model: Writer, beam: BeamConfig, compute: Compute, aligned: int, threads: int) -> TranslationJob:
        """The job of an open model."""
        combination = model.combination if isinstance(model, Ensemble) else None
        return cls(tuple(map(ModelOnDisk.of, model.models)), combination, beam, compute, aligned, threads)

    def begin(self, place: str) -> Callable[[Sequence[Words]], Translated]:
        """Open the models on the device of that name."""
        torch.set_num_threads(self.threads)
        models = [model.open_again() for model in self.models]
        model: Writer = models[0] if self.combination is None else Ensemble(models, self.combination)
        stepper = model.make_stepper(replace(self.compute, device=place))
        words = model.source_vocabulary, model.target_vocabulary
        translator = Translator(*words, stepper, self.beam, aligned=self.aligned)

        def translate(block: Sequence[Words]) -> Translated:
            translator.counts = Counts()
            return translator.translate(block), translator.counts

        return translate
