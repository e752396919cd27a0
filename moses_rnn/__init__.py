"""Neural features for phrase-based translation with Moses.

The score is the natural logarithm of p(target | source) under an RNN Encoder-Decoder (Cho et al., 2014).
docs/architecture.md lists the packages. The names below are the stable API (docs/api.md). They are imported when they
are first used, so that the commands need not wait for torch.
"""

from __future__ import annotations

import importlib

from moses_rnn.version import __version__

TYPE_CHECKING = False  # the commands heed Ctrl-C once this module is imported, and typing takes most of that
if TYPE_CHECKING:
    from moses_rnn.analysis.explain import Explanation, Neighbour
    from moses_rnn.api.models import Hypothesis, LanguageModel, Model, Sample, Translated, load, load_language_model
    from moses_rnn.api.pairs import Row
    from moses_rnn.api.tables import Table, read_table
    from moses_rnn.errors import ArgumentError, CheckpointError, InputError, MosesRnnError
    from moses_rnn.training.train import train

__all__ = [
    "ArgumentError",
    "CheckpointError",
    "Explanation",
    "Hypothesis",
    "InputError",
    "LanguageModel",
    "Model",
    "MosesRnnError",
    "Neighbour",
    "Row",
    "Sample",
    "Table",
    "Translated",
    "__version__",
    "load",
    "load_language_model",
    "read_table",
    "train",
]

_MODULES = {
    "analysis.explain": ("Explanation", "Neighbour"),
    "api.models": ("Hypothesis", "LanguageModel", "Model", "Sample", "Translated", "load", "load_language_model"),
    "api.pairs": ("Row",),
    "api.tables": ("Table", "read_table"),
    "errors": ("ArgumentError", "CheckpointError", "InputError", "MosesRnnError"),
    "training.train": ("train",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
