"""The words and phrases whose vectors are most alike: those with the highest cosine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from moses_rnn.analysis.maps import all_embeddings
from moses_rnn.errors import InputError, shown
from moses_rnn.models.annotated import source_reader
from moses_rnn.models.model import Model
from moses_rnn.networks.compute import HERE, Compute
from moses_rnn.table.phrases import words

Vectors = npt.NDArray[np.floating[Any]]
Nearest = list[tuple[bytes, float]]  # words or phrases with their cosines, the highest first


def find_nearest(
    given: Sequence[bytes], vectors: Vectors, others: Sequence[bytes], of_others: Vectors, count: int
) -> list[Nearest]:
    """Return the `count` nearest others of each given word or phrase, itself left out. Each has a row of vectors."""
    own, other = (v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-30) for v in (vectors, of_others))
    cosines = own @ other.T
    orders = np.argsort(-cosines, axis=1, kind="stable")
    return [
        [(others[i], float(of_text[i])) for i in order if others[i] != text][:count]
        for text, of_text, order in zip(given, cosines, orders, strict=True)
    ]


def nearest_words(model: Model, given: Sequence[bytes], side: str, count: int) -> list[Nearest]:
    """Return the nearest words of the same shortlist, by their embeddings; of subwords, the nearest subwords."""
    names, vectors = all_embeddings(model, side)
    rows = {name: row for row, name in enumerate(names)}
    vocabulary = model.vocabularies[side]
    ids = [vocabulary.ids([word]) for word in given]
    named = [vocabulary.words[of_word[0]] if len(of_word) == 1 else b"" for of_word in ids]
    if unknown := [word for word, name in zip(given, named, strict=True) if name not in rows]:
        expected = "words that are one subword" if model.of_subwords else f"words of the {side} shortlist"
        raise InputError(f"{model.folder}: expected {expected}, found {shown(unknown[0])}")
    return find_nearest(named, vectors[[rows[name] for name in named]], names, vectors, count)


def nearest_phrases(
    model: Model, given: Sequence[bytes], among: Sequence[bytes], count: int, compute: Compute = HERE
) -> list[Nearest]:
    """Return the nearest of some phrases or sentences, by the vectors from which the decoder starts."""
    return find_nearest(given, summaries(model, given, compute), among, summaries(model, among, compute), count)


def summaries(model: Model, phrases: Sequence[bytes], compute: Compute = HERE) -> Vectors:
    """Return the vector from which the decoder starts for each phrase. See `Model.summaries`."""
    ids_of = source_reader(model)
    return model.summaries([ids_of(words(phrase)) for phrase in phrases], compute)
