"""Look inside a trained network: gates, gradients, and the score of each word.

The functions run the network unchanged and return its inner values. H hidden units, E embedding dimensions, K words.
Phrases are lists of ids without the end symbol, in any order; all arrays are on the CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from moses_rnn.networks.batches import Batch, Ints, flatten, join_rows, take_rows
from moses_rnn.networks.cells import CellDecoder
from moses_rnn.networks.encdec import Decoder, EncDec
from moses_rnn.networks.finite import Floats, finite, finite_array
from moses_rnn.networks.layers import State
from moses_rnn.networks.network import previous_embeddings, previous_words
from moses_rnn.networks.softmax import learned_log_probs
from moses_rnn.networks.steps import Stepper
from moses_rnn.networks.tries import NOTHING
from moses_rnn.networks.vocabulary import END_ID, Phrase


class Gates(NamedTuple):
    """The gates at every step of some phrases: the first steps of all, then the second steps, and so on."""

    z: Floats  # update gates: near 1, a unit keeps its state; steps × H
    r: Floats  # reset gates: near 0, a unit forgets its state; steps × H
    phrases: Ints  # the phrase of each step, from 0; steps
    words: Ints  # id of the word read at each step, NOTHING for e(y_0) = 0; steps


@torch.no_grad()
def encoder_gates(model: EncDec, phrases: Sequence[Phrase]) -> Gates:
    """Return z and r of the encoder at every word of source phrases, ``</s>`` included (section 2.3)."""
    order, batch = _batch(model, phrases)
    z, r = model.encoder.recurrence().gates(*model.encoder.operands(batch))
    return Gates(finite_array(z), finite_array(r), order[finite_array(batch.rows())], finite_array(batch.packed()))


@torch.no_grad()
def decoder_gates(model: EncDec, sources: Sequence[Phrase], targets: Sequence[Phrase]) -> Gates:
    """Return z' and r' of the decoder at every step through target phrases.

    A step reads the word before the one it predicts: it reads the last word to predict ``</s>``, which is never read.
    With ``first_step`` "zero-embedding", there is one more step, before the first word.
    """
    read, source_batch = _batch(model, sources)
    order, batch = _batch(model, targets)
    decoder, c = model.decoder, model.encoder(source_batch)[np.argsort(read)[order]]
    e = previous_embeddings(decoder.embedding, batch)
    z, r = decoder.recurrence().gates(*decoder.operands(decoder.source_parts(c), e, batch))
    steps = slice(0 if model.config.first_step == "zero-embedding" else len(targets), None)
    rows, words = finite_array(batch.rows())[steps], finite_array(previous_words(batch, NOTHING))[steps]
    return Gates(finite_array(z), finite_array(r), order[rows], words)


def state_gradients(model: EncDec, sources: Sequence[Phrase], targets: Sequence[Phrase]) -> tuple[Floats, Ints]:
    """Return norms of ∂L(t)/∂h'(t-k), and k of each, for all steps t of the decoder and all k from 0 to t - 1.

    L(t) is -log p(y_t | y_<t, e), and h'(t) the state that predicts y_t. The state of an LSTM includes its memory. The
    order is unspecified. See Hochreiter et al. (2001), "Gradient flow in recurrent nets", and Bengio et al. (1994).
    """
    read, source_batch = _batch(model, sources)
    order, batch = _batch(model, targets)
    decoder, active = model.decoder, batch.active
    with torch.no_grad():
        source_of = torch.from_numpy(np.argsort(read)[order])
        encoded = take_rows(decoder.source_parts(model.encoder(source_batch)), source_of)
        e = previous_embeddings(decoder.embedding, batch)
        x, c, h_0, read_at = decoder.operands(encoded, e, batch)
        inputs = [*torch.split(x, read_at)]
        states: list[State] = [decoder.cell.begin(h_0) if isinstance(decoder, CellDecoder) else (h_0,)]
        if model.config.first_step == "zero-embedding":
            states = [_step(decoder, inputs.pop(0), c, states[0])]
        for x_t in inputs:
            states.append(_step(decoder, x_t, c, take_rows(states[-1], slice(len(x_t)))))
    words, inside = (torch.split(part, active) for part in (batch.packed(), e))
    norms, distances = [], []
    rows, pending = torch.empty(0, dtype=torch.int64), take_rows(states[0], slice(0))  # of all L(t) at and after a step
    for step in reversed(range(len(active))):
        here = slice(active[step])
        h = states[step][0].requires_grad_()
        r = decoder.read_out(h, inside[step], encoded.O_cc[here])
        loss = -learned_log_probs(r, model.output, words[step], model.kernel, None).sum()
        own = (torch.autograd.grad(loss, h)[0], *map(torch.zeros_like, states[step][1:]))
        rows, pending = torch.cat([torch.arange(active[step]), rows]), join_rows([own, pending])
        norms.append(torch.cat(pending, 1).double().norm(dim=1))
        distances.append(np.repeat(np.arange(len(active) - step), active[step:]))
        if step:
            above = tuple(part.index_select(0, rows).requires_grad_() for part in states[step - 1])
            state = _step(decoder, inputs[step - 1].index_select(0, rows), c.index_select(0, rows), above)
            pending = torch.autograd.grad(state, above, pending)
    return finite_array(torch.cat(norms)), np.concatenate(distances)


def _step(decoder: Decoder, x: Tensor, c: Tensor, state: State) -> State:
    if isinstance(decoder, CellDecoder):
        return decoder.run(x, c, state, [len(x)])[1]
    return (decoder.states(x, c, state[0], [len(x)]),)


@torch.inference_mode()
def stepped_log_probs(stepper: Stepper, source: Phrase, target: Phrase) -> list[float]:
    """Return natural log p(y_t | y_<t, e) of each target word and ``</s>``, by any network that writes; words + 1."""
    encoded, _ = stepper.encode(*flatten([source]))
    prefixes, log_probs = stepper.start(encoded), []
    row = torch.zeros(1, dtype=torch.int64, device=stepper.device)
    for word in [*target, END_ID]:
        log_probs.append(float(stepper.next_log_probs(encoded, prefixes)[0, word]))
        prefixes = stepper.step(encoded, prefixes, row, row + word)
    return finite(torch.tensor(log_probs, dtype=torch.float64)).tolist()


def _batch(model: EncDec, phrases: Sequence[Phrase]) -> tuple[Ints, Batch]:
    """Return the order of the phrases, longest first, and their batch."""
    order = np.argsort([-len(phrase) for phrase in phrases], kind="stable")
    return order, Batch.from_lists([phrases[i] for i in order], model.decoder.b_V.device)
