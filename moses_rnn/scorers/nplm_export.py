"""A CSLM for Moses's NeuralLM, which does not normalise: how far its sums are from 1; the mean of that is taken off."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from moses_rnn.errors import InputError, ScoreError
from moses_rnn.moses.nplm import BEGIN, NEVER, NULL, NplmNetwork
from moses_rnn.networks.n_grams import NGramScores
from moses_rnn.scorers.open import Model
from moses_rnn.table.table_blocks import PhraseIds


@dataclass(frozen=True)
class Normalisers:
    """log Z over the words and end symbols of a text."""

    tokens: int
    mean: float
    mean_abs: float
    mean_abs_without_mean: float  # what remains when the mean is folded into the output biases


def normalisers(model: Model, lines: Iterable[bytes], name: str) -> Normalisers:
    """How far a CSLM is from normalising itself.

    Raises:
        InputError: the text is empty.
    """
    sentences = [line.rstrip(b"\r\n") for line in lines if line.strip(b" \t\r\n")]
    if not sentences:
        raise InputError(f"{name}: expected sentences, found none")
    network = NGramScores(model.network)
    log_Z = network.log_normalisers(network.n_grams(*PhraseIds(model.target_vocabulary.id_of())(sentences)))
    mean = float(log_Z.mean())
    return Normalisers(len(log_Z), mean, float(np.abs(log_Z).mean()), float(np.abs(log_Z - mean).mean()))


def nplm_network(model: Model, mean_log_z: float) -> NplmNetwork:
    """The network as NPLM has it.

    ``<s>`` and ``<null>``, a word missing before a phrase, are words that are never predicted; the embedding of
    ``<null>`` is the mean of all words'.

    Args:
        model: the CSLM.
        mean_log_z: is taken off the output biases.

    Raises:
        ScoreError: a number would not be finite.
    """
    embeddings, W_1, b_1, W_2, b_2, G, b_G = (tensor.float().cpu().numpy() for tensor in model.network.parameters())
    with np.errstate(over="ignore"):
        nothing, biases = embeddings[:-1].mean(0, keepdims=True), b_G - np.float32(mean_log_z)
    if not (np.isfinite(nothing).all() and np.isfinite(biases).all()):
        raise ScoreError(f"expected finite weights and a finite mean of log Z, found {mean_log_z:g}")
    never = np.full(2, NEVER, np.float32)
    return NplmNetwork(
        order=model.config.order,
        words=[*model.target_vocabulary.words, BEGIN, NULL],
        input_embeddings=np.concatenate([embeddings, nothing]),
        hidden_weights=(W_1, W_2),
        hidden_biases=(b_1, b_2),
        output_weights=np.concatenate([G, np.zeros((2, G.shape[1]), np.float32)]),
        output_biases=np.concatenate([biases, never]),
    )
