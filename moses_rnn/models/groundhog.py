"""Weights of the authors' released code (GroundHog, experiments/nmt) as networks of this package.

There, a matrix maps a row vector (inputs × outputs), embeddings have a bias, and the update gate takes the NEW state,
where here it keeps the old one: σ(-x) = 1 - σ(x), so that its weights change their signs. H hidden units, E embedding
dimensions, M maxout units, R output rank, A units of alignment, S and K words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from moses_rnn.models.encdec import ENCDEC
from moses_rnn.models.folders import MAX_SIZE, SENTENCES, Kind
from moses_rnn.models.rnnsearch import RNNSEARCH
from moses_rnn.models.variants import SWITCHES
from moses_rnn.models.vocabulary import END, UNKNOWN, Vocabulary, is_word

Array = npt.NDArray[Any]
Shape = tuple[int, ...]
START = b"<s>"  # what their reserved row 0 is called
UNKNOWN_ROW = 1
LEAST_ROWS = 3


class Place(NamedTuple):
    """Where a tensor of theirs goes."""

    theirs: str
    ours: str
    shape: tuple[str, ...]  # theirs, in letters
    sign: int = 1


def _gated(theirs: str, ours: str) -> list[Place]:
    """A layer's own weights."""
    return [
        Place(f"W_0_{theirs}_input_embdr_0", f"{ours}.W", ("E", "H")),
        Place(f"b_0_{theirs}_input_embdr_0", f"{ours}.b", ("H",)),
        Place(f"W_0_{theirs}_update_embdr_0", f"{ours}.W_z", ("E", "H"), -1),
        Place(f"W_0_{theirs}_reset_embdr_0", f"{ours}.W_r", ("E", "H")),
        Place(f"W_{theirs}_transition_0", f"{ours}.U", ("H", "H")),
        Place(f"G_{theirs}_transition_0", f"{ours}.U_z", ("H", "H"), -1),
        Place(f"R_{theirs}_transition_0", f"{ours}.U_r", ("H", "H")),
    ]


def _decoder(context: str) -> list[Place]:
    """The decoder's weights; `context` is the width of what it knows of the source."""
    return [
        *_gated("dec", "decoder"),
        Place("W_0_dec_initializer_0", "decoder.V", ("H", "H")),
        Place("b_0_dec_initializer_0", "decoder.b_V", ("H",)),
        Place("W_0_dec_dec_inputter_0", "decoder.C", (context, "H")),
        Place("W_0_dec_dec_updater_0", "decoder.C_z", (context, "H"), -1),
        Place("W_0_dec_dec_reseter_0", "decoder.C_r", (context, "H")),
        Place("W_0_dec_hid_readout_0", "decoder.O_h", ("H", "2M")),
        Place("b_0_dec_hid_readout_0", "decoder.b_O", ("2M",)),
        Place("W_0_dec_prev_readout_0", "decoder.O_y", ("E", "2M")),
        Place("W_0_dec_repr_readout", "decoder.O_c", (context, "2M")),
        Place("W1_dec_deep_softmax", "decoder.G_r", ("M", "R")),
        Place("W2_dec_deep_softmax", "decoder.G_l", ("R", "K")),
        Place("b_dec_deep_softmax", "decoder.b_G", ("K",)),
    ]


EMBEDDINGS = [
    Place("W_0_enc_approx_embdr", "encoder.embedding", ("S", "E")),
    Place("b_0_enc_approx_embdr", "encoder.embedding", ("E",)),
    Place("W_0_dec_approx_embdr", "decoder.embedding", ("K", "E")),
    Place("b_0_dec_approx_embdr", "decoder.embedding", ("E",)),
]
PHRASES = [*EMBEDDINGS, *_gated("enc", "encoder"), *_decoder("H")]
SEARCH = [
    *EMBEDDINGS,
    *_gated("enc", "encoder.forward"),
    *_gated("back_enc", "encoder.backward"),
    *_decoder("2H"),
    Place("A_dec_transition_0", "align.U_a", ("2H", "A")),
    Place("B_dec_transition_0", "align.W_a", ("H", "A")),
    Place("D_dec_transition_0", "align.v", ("A", "1")),
]
ZEROS = "b_z", "b_r"  # biases that they do not have, of every gated layer
OF_WORDS = {"encoder.embedding": "source", "decoder.embedding": "target", "decoder.G_l": "target"}
OF_WORDS |= {"decoder.b_G": "target"}


@dataclass(frozen=True)
class Plan:
    """What an archive holds, by the names and shapes of its tensors."""

    kind: Kind
    places: Sequence[Place]
    sizes: Mapping[str, int]  # by letter
    left_out: Sequence[str]  # names of theirs that have no place

    def config(self, unit: str | None = None) -> dict[str, Any]:
        """The network's, as config.json has it; `unit` is what it learned from, if that is not the kind's own."""
        letters = {"hidden_size": "H", "embedding_size": "E", "maxout_size": "M", "output_rank": "R"}
        sizes: dict[str, Any] = {key: self.sizes[letter] for key, letter in letters.items()}
        if self.kind is ENCDEC:
            return {**sizes, "variant": "groundhog", **SWITCHES["groundhog"]}
        return {**sizes, "alignment_size": self.sizes["A"], "phases": "groundhog", "unit": unit or SENTENCES}


def plan_of(shapes: Mapping[str, Shape]) -> Plan:
    """Which network an archive holds, and where each of its tensors goes.

    Raises:
        ValueError: tensors are missing, or do not fit together; of cells that are not read, LSTMs say.
    """
    kind, places = (RNNSEARCH, SEARCH) if "A_dec_transition_0" in shapes else (ENCDEC, PHRASES)
    if missing := sorted({place.theirs for place in places} - shapes.keys()):
        raise ValueError(
            f"expected the {len(places)} tensors of gated units, as the released code has them for "
            f"{'RNNsearch' if kind is RNNSEARCH else 'phrases'}, found none of {', '.join(missing)[:300]}"
        )
    sizes = _sizes(shapes, places)
    return Plan(kind, places, sizes, sorted(shapes.keys() - {place.theirs for place in places}))


SIZED_BY = {"S": ("W_0_enc_approx_embdr", 0), "E": ("W_0_enc_approx_embdr", 1), "K": ("W_0_dec_approx_embdr", 0)}
SIZED_BY |= {"H": ("W_enc_transition_0", 0), "M": ("W1_dec_deep_softmax", 0), "R": ("W1_dec_deep_softmax", 1)}
SIZED_BY |= {"A": ("B_dec_transition_0", -1)}


def _sizes(shapes: Mapping[str, Shape], places: Sequence[Place]) -> dict[str, int]:
    """The size that each letter stands for; all shapes agree in it."""
    sizes = {"1": 1, "A": 1} | {letter: _side(shapes, *of) for letter, of in SIZED_BY.items() if of[0] in shapes}
    sizes |= {"2H": 2 * sizes["H"], "2M": 2 * sizes["M"]}
    for place in places:
        expected = tuple(sizes[letter] for letter in place.shape)
        if shapes[place.theirs] != expected:
            letters = " × ".join(place.shape)
            raise ValueError(f"expected {place.theirs} to be {letters}, {expected}, found {shapes[place.theirs]}")
    return sizes


def _side(shapes: Mapping[str, Shape], name: str, axis: int) -> int:
    shape = shapes[name]
    if len(shape) != 2 or not all(0 < size <= MAX_SIZE for size in shape):
        raise ValueError(f"expected {name} to be a matrix, found the shape {shape}")
    return shape[axis]


class Words(NamedTuple):
    """A side's vocabulary, and the row of theirs that each word has."""

    vocabulary: Vocabulary
    rows: npt.NDArray[np.int64]
    left_out: int = 0  # lines that have no row


def words_of(lines: Sequence[bytes], rows: int, end_row: int | None = None) -> Words:
    """The words of their rows in our order: ``<unk>``, ``</s>``, then all others as they come, row 0 as ``<s>``.

    Args:
        lines: their words, line number = row; the end symbol's row, if it is the last one, may have none, and rows that
            the network does not have are left out.
        rows: of the embedding.
        end_row: of the end symbol; None: the last.

    Raises:
        ValueError: a row has no word, or one that another row has.
    """
    end = rows - 1 if end_row is None else end_row
    if rows < LEAST_ROWS:
        raise ValueError(f"expected at least {LEAST_ROWS} rows, found {rows:,}")
    if not 0 <= end < rows or end == UNKNOWN_ROW:
        raise ValueError(f"expected the end symbol's row to be one of {rows:,}, but not {UNKNOWN_ROW}, found {end:,}")
    others = [row for row in range(rows) if row not in {UNKNOWN_ROW, end}]
    if others[-1] >= len(lines):
        raise ValueError(f"expected a word for each of {rows:,} rows but the last, found {len(lines):,} lines")
    line_of = {UNKNOWN: 0, END: 0}  # no line's
    words = [UNKNOWN, END]
    for row in others:
        word = lines[row] if row else START
        if not is_word(word):
            raise ValueError(f"line {row + 1}: expected one word in UTF-8, found {str(word)[:100]}")
        if word in line_of:
            also = f"line {line_of[word]}" if line_of[word] else "a word of its own row"
            raise ValueError(f"line {row + 1}: expected each word once, found {str(word)[:100]}, which is {also}")
        line_of[word] = row + 1
        words.append(word)
    return Words(Vocabulary(words), np.array([UNKNOWN_ROW, end, *others]), max(len(lines) - rows, 0))


def network_of(
    plan: Plan, read: Callable[[str], Array], words: Mapping[str, Words], unit: str | None = None
) -> nn.Module:
    """The network.

    Args:
        plan: of the archive.
        read: gives a tensor by its name there.
        words: of "source", which the network reads, and "target".
        unit: that it learned from; None: phrases, or of an RNNsearch sentences.

    Raises:
        ValueError: a weight is not finite.
    """
    network = plan.kind.without_weights(plan.config(unit), [plan.sizes["S"], plan.sizes["K"]])
    tensors = {name: torch.zeros(tensor.shape) for name, tensor in network.state_dict().items() if _is_zero(name)}
    for place in plan.places:
        tensor = torch.from_numpy(_turned(place, read(place.theirs), words))
        if not torch.isfinite(tensor).all():
            raise ValueError(f"expected finite weights, found NaN or infinity in {place.theirs}")
        tensors[place.ours] = tensors[place.ours] + tensor if place.ours in tensors else tensor
    network.load_state_dict(tensors, assign=True)
    return network.requires_grad_(False).eval()


def _is_zero(name: str) -> bool:
    return name.rpartition(".")[2] in ZEROS


def _turned(place: Place, array: Array, words: Mapping[str, Words]) -> npt.NDArray[np.float32]:
    """A tensor of theirs as one of ours."""
    is_embedding = place.ours.endswith(".embedding")
    array = array[:, 0] if place.shape == ("A", "1") else array if is_embedding else array.T
    if place.ours in OF_WORDS and place.shape != ("E",):
        array = array[words[OF_WORDS[place.ours]].rows]
    with np.errstate(over="ignore"):  # refused as infinite
        return np.ascontiguousarray(place.sign * array, np.float32)
