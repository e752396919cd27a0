"""The text format of NPLM (nplm src/model.cpp), which a Moses built ``--with-nplm`` runs as ``NeuralLM``.

Moses's wrapper uses the network's raw output as the score, so the network should be self-normalised.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moses_rnn.errors import InputError, ScoreError, shown
from moses_rnn.table.phrases import words

Matrix = npt.NDArray[np.float32]

BEGIN, NULL = b"<s>", b"<null>"
NEVER = -100.0  # output bias of words that are never predicted; Moses's floor


@dataclass(frozen=True)
class NplmNetwork:
    """A network of two rectified layers; n words are its n-grams, oldest first.

    `words` is the input and output vocabulary by id, including ``<unk>``, ``<s>``, ``</s>`` and ``<null>`` (a missing
    word before a phrase).
    """

    order: int
    words: Sequence[bytes]  # V
    input_embeddings: Matrix  # V × E
    hidden_weights: tuple[Matrix, Matrix]  # H_1 × (order - 1)E, H_2 × H_1
    hidden_biases: tuple[Matrix, Matrix]  # H_1, H_2
    output_weights: Matrix  # V × H_2
    output_biases: Matrix  # V

    def lines(self) -> Iterator[bytes]:
        """Yield the lines of the file; nine digits preserve float32 values."""
        self._check()
        (first, second), (b_1, b_2) = self.hidden_weights, self.hidden_biases
        config = {
            "version": 1,
            "ngram_size": self.order,
            "input_vocab_size": len(self.words),
            "output_vocab_size": len(self.words),
            "input_embedding_dimension": self.input_embeddings.shape[1],
            "num_hidden": len(b_1),
            "output_embedding_dimension": len(b_2),
            "activation_function": "rectifier",
        }
        yield from _section(b"config", (f"{key} {value}".encode() for key, value in config.items()))
        for side in (b"input", b"output"):
            yield from _section(side + b"_vocab", self.words)
        yield from _section(b"input_embeddings", _rows(self.input_embeddings))
        for number, (weights, biases) in enumerate(((first, b_1), (second, b_2)), start=1):
            yield from _section(b"hidden_weights %d" % number, _rows(weights))
            yield from _section(b"hidden_biases %d" % number, _rows(biases[:, None]))
        yield from _section(b"output_weights", _rows(self.output_weights))
        yield from _section(b"output_biases", _rows(self.output_biases[:, None]))
        yield b"\\end\n"

    def _check(self) -> None:
        seen: set[bytes] = set()
        for word in self.words:
            if words(word) != [word] or b"\n" in word or word in seen:
                raise InputError(f"expected words without blanks, each once, as NPLM reads them, found {shown(word)}")
            seen.add(word)


def nplm_network(order: int, words: Sequence[bytes], weights: Mapping[str, Matrix], mean_log_z: float) -> NplmNetwork:
    """Convert a CSLM to NPLM's form, subtracting the mean of log Z from the output biases.

    `weights` are by name, as in model.safetensors; the last row of the embedding is ``<s>``. ``<s>`` and ``<null>`` are
    never predicted; the embedding of ``<null>`` is the mean of all words' embeddings.
    """
    embeddings, G = weights["embedding"], weights["G"]
    with np.errstate(over="ignore"):
        nothing, biases = embeddings[:-1].mean(0, keepdims=True), weights["b_G"] - np.float32(mean_log_z)
    if not (np.isfinite(nothing).all() and np.isfinite(biases).all()):
        raise ScoreError(f"expected finite weights and a finite mean of log Z, found {mean_log_z:g}")
    never = np.full(2, NEVER, np.float32)
    return NplmNetwork(
        order=order,
        words=[*words, BEGIN, NULL],
        input_embeddings=np.concatenate([embeddings, nothing]),
        hidden_weights=(weights["W_1"], weights["W_2"]),
        hidden_biases=(weights["b_1"], weights["b_2"]),
        output_weights=np.concatenate([G, np.zeros((2, G.shape[1]), np.float32)]),
        output_biases=np.concatenate([biases, never]),
    )


def _section(name: bytes, lines: Sequence[bytes] | Iterator[bytes]) -> Iterator[bytes]:
    yield b"\\" + name + b"\n"
    for line in lines:
        yield line + b"\n"
    yield b"\n"


def _rows(matrix: Matrix) -> Iterator[bytes]:
    for row in matrix:
        yield b"\t".join([b"%.9g" % value for value in row.tolist()])
