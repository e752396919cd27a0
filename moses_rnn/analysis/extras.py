"""Libraries of the extra ``report``, which are optional."""

from __future__ import annotations

from importlib.util import find_spec

from moses_rnn.errors import MosesRnnError

LIBRARIES = {"matplotlib": "matplotlib", "scikit-learn": "sklearn"}  # their modules


def missing_libraries() -> list[str]:
    """Return the libraries that are not installed."""
    return [name for name, module in LIBRARIES.items() if find_spec(module) is None]


def check_library(name: str, work: str, otherwise: str) -> None:
    """Raise MosesRnnError if a library is missing. Call this before long work.

    `work` says what needs the library, `otherwise` what works without it.
    """
    if name in missing_libraries():
        raise MosesRnnError(f"{work} needs {name}: pip install 'moses-rnn[report]' ({otherwise})")
