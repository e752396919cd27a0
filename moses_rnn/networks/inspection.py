"""What a trained RNN Encoder-Decoder holds inside: embeddings, phrase summaries, gates, the score word by word.

Nothing is computed here: the network of `encdec` runs as it stands and says what passes by. Of other networks,
word embeddings and summaries are known. H hidden units,
E embedding dimensions, K words. Phrases are lists of ids without the end symbol, in any order; all arrays are on the
CPU, of the type of the weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from moses_rnn.errors import ScoreError
from moses_rnn.networks.batches import Batch
from moses_rnn.networks.encdec import EncDec
from moses_rnn.networks.steps import Stepper
from moses_rnn.networks.tries import NOTHING
from moses_rnn.networks.vocabulary import END_ID, Phrase

Floats = npt.NDArray[np.floating[Any]]
Ints = npt.NDArray[np.int64]

PHRASES = 512  # run together


class Gates(NamedTuple):
    """The gates of every step of some phrases: phrase after phrase, and in each step after step."""

    z: Floats  # update gates: near 1, a unit keeps its state; steps × H
    r: Floats  # reset gates: near 0, a unit forgets its state; steps × H
    phrases: Ints  # the phrase of each step, from 0; steps
    words: Ints  # id of the word that each step reads, NOTHING for e(y_0) = 0; steps


def word_embeddings(model: Any, side: str) -> Floats:
    """e(·) of every source or target word, by id; K × E at least. The network may be any of pairs."""
    return _array(model.embeddings[side])


@torch.inference_mode()
def summaries(stepper: Stepper[Any, Any], phrases: Sequence[Phrase]) -> Floats | None:
    """The one vector of each phrase or sentence that a network's decoder begins with; phrases × numbers.

    There is at least one. None of a network that has no such vector; see `Stepper.summaries`.
    """
    blocks = []
    for first in range(0, len(phrases), PHRASES):
        block = phrases[first : first + PHRASES]
        ids = np.array([word for phrase in block for word in phrase], np.int64)
        vectors = stepper.summaries(ids, np.array([len(phrase) for phrase in block], np.int64))
        if vectors is None:
            return None
        blocks.append(_array(vectors))
    return np.concatenate(blocks)


@torch.no_grad()
def encoder_gates(model: EncDec, phrases: Sequence[Phrase]) -> Gates:
    """z and r of the encoder at every word of source phrases, the closing ``</s>`` included (section 2.3)."""
    blocks = []
    for rows in _blocks(phrases):
        batch = _batch(model, phrases, rows)
        z, r = model.encoder.gates(batch)
        blocks.append(Gates(_array(z), _array(r), rows[_array(batch.rows())], _array(batch.packed())))
    return _in_order(blocks, model)


@torch.no_grad()
def decoder_gates(model: EncDec, sources: Sequence[Phrase], targets: Sequence[Phrase]) -> Gates:
    """z' and r' of the decoder at every step on its way through target phrases.

    A step reads the word before the one that is predicted from it: the last word is read to predict ``</s>``, which
    itself is never read. With ``first_step`` "zero-embedding" there is one more step, before the first word.

    Args:
        model: the network.
        sources: the source of each target.
        targets: as many.
    """
    blocks = []
    skipped = 0 if model.config.first_step == "zero-embedding" else 1
    for rows in _blocks(targets):
        batch = _batch(model, targets, rows)
        c = _summaries(model, [sources[i] for i in rows])
        z, r = model.decoder.gates(model.decoder.terms(c, c.dtype), batch)
        first = batch.active[0] * skipped
        phrases, words = rows[_array(batch.rows())[first:]], _previous(batch)[first:]
        blocks.append(Gates(_array(z), _array(r), phrases, words))
    return _in_order(blocks, model)


@torch.inference_mode()
def stepped_log_probs(stepper: Stepper[Any, Any], source: Phrase, target: Phrase) -> list[float]:
    """log p(y_t | y_<t, e) of each target word, then of ``</s>``, by any network that writes; natural; words + 1."""
    terms, _ = stepper.read(np.array(source, np.int64), np.array([len(source)], np.int64))
    prefixes, log_probs = stepper.start(terms), []
    for word in target:
        log_probs.append(float(stepper.next_log_probs(terms, prefixes)[0, word]))
        row = torch.zeros(1, dtype=torch.int64, device=stepper.device)
        prefixes = stepper.step(terms, prefixes, row, row + word)
    log_probs.append(float(stepper.next_log_probs(terms, prefixes)[0, END_ID]))
    return finite(torch.tensor(log_probs, dtype=torch.float64)).tolist()


def finite(tensor: Tensor) -> Tensor:
    """What a network holds inside, refused if a number is none.

    Raises:
        ScoreError: one is not finite.
    """
    if not tensor.isfinite().all():
        raise ScoreError("expected finite numbers inside the network, found nan or infinity")
    return tensor


def _array(tensor: Tensor) -> npt.NDArray[Any]:
    array: npt.NDArray[Any] = finite(tensor.detach()).cpu().numpy()
    return array


def _blocks(phrases: Sequence[Phrase]) -> Iterator[Ints]:
    """Rows of phrases that are run together, longest first: phrases of one length are then mostly together."""
    order = np.argsort([-len(phrase) for phrase in phrases], kind="stable")
    yield from (order[first : first + PHRASES] for first in range(0, len(order), PHRASES))


def _batch(model: EncDec, phrases: Sequence[Phrase], rows: Ints) -> Batch:
    return Batch.from_lists([phrases[i] for i in rows], model.decoder.b_V.device)


def _summaries(model: EncDec, phrases: Sequence[Phrase]) -> Tensor:
    """c of each phrase, in any order; phrases × H."""
    order = np.argsort([-len(phrase) for phrase in phrases], kind="stable")
    c = model.encoder(_batch(model, phrases, order), model.encoder.embedding.dtype)
    return finite(c[np.argsort(order)])


def _previous(batch: Batch) -> Ints:
    """The id before each packed one; NOTHING before the first."""
    before = [np.full(batch.active[0], NOTHING)]
    return np.concatenate(before + [_array(batch.ids[:n, t]) for t, n in enumerate(batch.active[1:])])


def _in_order(blocks: list[Gates], model: EncDec) -> Gates:
    """Steps by phrase; those of one phrase are in order already."""
    blocks = [gates for gates in blocks if len(gates.words)]
    if not blocks:
        nothing = np.zeros((0, model.config.hidden_size), _array(model.encoder.b).dtype)
        return Gates(nothing, nothing, np.zeros(0, np.int64), np.zeros(0, np.int64))
    joined = [np.concatenate(parts) for parts in zip(*blocks, strict=True)]
    order = np.argsort(joined[2], kind="stable")
    return Gates(*(array[order] for array in joined))
