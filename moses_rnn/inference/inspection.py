"""What a trained RNN Encoder-Decoder holds inside: embeddings, phrase summaries, gates, the score word by word.

Nothing is computed here: the network of `encdec` runs as it stands, and what passes by is written down. H hidden units,
E embedding dimensions, K words. Phrases are lists of ids without the end symbol, in any order; all arrays are on the
CPU, of the type of the weights.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from moses_rnn.inference.tries import NOTHING
from moses_rnn.models.batches import Batch
from moses_rnn.models.encdec import Decoder, EncDec, Encoder
from moses_rnn.models.recurrence import Forward

Floats = npt.NDArray[np.floating[Any]]
Ints = npt.NDArray[np.int64]
Phrase = Sequence[int]

PHRASES = 512  # run together
SIDES = ("source", "target")


class Gates(NamedTuple):
    """The gates of every step of some phrases: phrase after phrase, and in each step after step."""

    z: Floats  # update gates: near 1, a unit keeps its state; steps × H
    r: Floats  # reset gates: near 0, a unit forgets its state; steps × H
    phrases: Ints  # the phrase of each step, from 0; steps
    words: Ints  # id of the word that each step reads, NOTHING for e(y_0) = 0; steps


def word_embeddings(model: EncDec, side: str) -> Floats:
    """e(·) of every source or target word, by id; K × E."""
    embedding = (model.encoder, model.decoder)[SIDES.index(side)].embedding
    return _array(embedding)


@torch.no_grad()
def summaries(model: EncDec, phrases: Sequence[Phrase]) -> Floats:
    """The summary c of each source phrase (section 2.2, equation 3); phrases × H."""
    c = np.zeros((len(phrases), model.config.hidden_size), _array(model.encoder.b).dtype)
    for rows in _blocks(phrases):
        c[rows] = _array(model.encoder(_batch(model, phrases, rows), model.encoder.b.dtype))
    return c


@torch.no_grad()
def encoder_gates(model: EncDec, phrases: Sequence[Phrase]) -> Gates:
    """z and r of the encoder at every word of source phrases, the closing ``</s>`` included (section 2.3)."""
    found = []
    for rows in _blocks(phrases):
        batch = _batch(model, phrases, rows)
        with _listening(model.encoder) as heard:
            model.encoder(batch, model.encoder.b.dtype)
        found.append(_gates(heard, rows[_array(batch.rows())], _array(batch.packed())))
    return _in_order(found, model)


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
    found = []
    skipped = 0 if model.config.first_step == "zero-embedding" else 1
    for rows in _blocks(targets):
        batch = _batch(model, targets, rows)
        c = torch.from_numpy(summaries(model, [sources[i] for i in rows])).to(batch.ids.device)
        with _listening(model.decoder) as heard:
            model.decoder.nodes(model.decoder.context(c, c.dtype), batch, c.dtype)
        first = batch.active[0] * skipped
        found.append(_gates(heard, rows[_array(batch.rows())[first:]], _previous(batch)[first:]))
    return _in_order(found, model)


@torch.no_grad()
def word_log_probs(model: EncDec, source: Phrase, target: Phrase) -> npt.NDArray[np.float64]:
    """log p(y_t | y_<t, e) of each target word, then of ``</s>``; natural; words + 1. Their sum is log p(f|e)."""
    device = model.decoder.b.device
    read, written = Batch.from_lists([source], device), Batch.from_lists([target], device)
    found = model.word_log_probs(read, written, torch.zeros(1, dtype=torch.int64, device=device))
    return _array(found).astype(np.float64)


def _array(tensor: Tensor) -> npt.NDArray[Any]:
    array: npt.NDArray[Any] = tensor.detach().cpu().numpy()
    return array


def _blocks(phrases: Sequence[Phrase]) -> Iterator[Ints]:
    """Rows of phrases that are run together, longest first: phrases of one length are then mostly together."""
    order = np.argsort([-len(phrase) for phrase in phrases], kind="stable")
    yield from (order[first : first + PHRASES] for first in range(0, len(order), PHRASES))


def _batch(model: EncDec, phrases: Sequence[Phrase], rows: Ints) -> Batch:
    return Batch.from_lists([phrases[i] for i in rows], model.decoder.b.device)


def _previous(batch: Batch) -> Ints:
    """The id before each packed one; NOTHING before the first."""
    before = [np.full(batch.active[0], NOTHING)]
    return np.concatenate(before + [_array(batch.ids[:n, t]) for t, n in enumerate(batch.active[1:])])


@contextlib.contextmanager
def _listening(network: Encoder | Decoder) -> Iterator[list[Tensor]]:
    """Write down the gates of every step that is taken meanwhile: steps of (z, r), rows × 2H."""
    heard: list[Tensor] = []
    do = network.do

    def step_after(x: Tensor, Uh: Tensor, c: Tensor, h: Tensor) -> Forward:
        found = do.step_after(x, Uh, c, h)
        heard.append(found[1])
        return found

    def gates_before(x: Tensor, Uh: Tensor, c: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        found = do.gates_before(x, Uh, c, h)
        heard.append(found[0])
        return found

    network.do = do._replace(step_after=step_after, gates_before=gates_before)
    try:
        yield heard
    finally:
        network.do = do


def _gates(heard: list[Tensor], phrases: Ints, words: Ints) -> Gates:
    if not heard:  # only empty targets, whose only word is predicted from h'_0
        return Gates(np.zeros((0, 0)), np.zeros((0, 0)), phrases, words)
    z, r = torch.cat(heard).chunk(2, 1)
    return Gates(_array(z), _array(r), phrases, words)


def _in_order(found: list[Gates], model: EncDec) -> Gates:
    """Steps by phrase; those of one phrase are in order already."""
    found = [gates for gates in found if len(gates.words)]
    if not found:
        nothing = np.zeros((0, model.config.hidden_size), _array(model.encoder.b).dtype)
        return Gates(nothing, nothing, np.zeros(0, np.int64), np.zeros(0, np.int64))
    joined = [np.concatenate(parts) for parts in zip(*found, strict=True)]
    order = np.argsort(joined[2], kind="stable")
    return Gates(*(array[order] for array in joined))
