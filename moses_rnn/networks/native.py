"""The RNN Encoder-Decoder in the native core: whole chunks of phrase pairs in one call, without the interpreter's lock.

The same equations and the same sharing as `encdec` over `tries`, in one thread: several threads score several chunks.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from moses_rnn.native import PRECISIONS, NativeCore
from moses_rnn.networks.batches import Lengths
from moses_rnn.networks.trie_scoring import IdPhrases
from moses_rnn.networks.vocabulary import Ids

if TYPE_CHECKING:
    from moses_rnn.networks.encdec import Decoder, EncDec, Encoder

CELL = ("embedding", "W", "W_z", "W_r", "U", "U_z", "U_r", "b", "b_z", "b_r")
READ_OUT = ("V", "b_V", "C", "C_z", "C_r", "O_h", "O_c", "O_y", "b_O", "G_r", "G_l", "b_G")


class NativeEncDec:
    """A network with its weights packed for products.

    Args:
        model: the trained network.
        core: the library.
        precision: of products, one that the core `multiplies` in; states, gates and sums are float32.

    Raises:
        MemoryError: there is no room for it.
    """

    def __init__(self, model: EncDec, core: NativeCore, precision: str = "fp32") -> None:
        self.device = torch.device("cpu")
        self._functions = core.functions
        config = model.config
        sizes = [
            *(config.hidden_size, config.embedding_size, config.maxout_size, config.output_rank),
            *(config.source_vocabulary_size, config.target_vocabulary_size),
            *(config.summary == "tanh", config.first_step == "zero-embedding", config.decoder_reset == "after"),
        ]
        self._words = config.source_vocabulary_size, config.target_vocabulary_size
        self._weights = _weights(model)  # the library reads embeddings and G_l where they are
        pointers = (ctypes.c_void_p * len(self._weights))(
            *(w.data_ptr() if w is not None else None for w in self._weights)
        )
        new = self._functions.moses_rnn_network_new
        new.restype = ctypes.c_void_p
        self._network = new(
            (ctypes.c_int64 * len(sizes))(*sizes), pointers, core.instructions, PRECISIONS.index(precision)
        )
        if not self._network:
            raise MemoryError("cannot allocate memory for the network's packed weights")

    def __del__(self) -> None:
        if getattr(self, "_network", None):
            self._functions.moses_rnn_network_free(ctypes.c_void_p(self._network))

    def log_probs(self, sources: IdPhrases, targets: IdPhrases) -> npt.NDArray[np.float64]:
        """See `PairNetwork`.

        Raises:
            ValueError: there are not as many targets as sources, or ids that the network does not know.
            MemoryError: there is no room for the states of so many.
        """
        count = len(sources[1])
        if len(targets[1]) != count:
            raise ValueError(f"expected as many targets as sources, found {len(targets[1]):,} and {count:,}")
        arrays = [
            array for side, most in zip((sources, targets), self._words, strict=True) for array in _checked(*side, most)
        ]
        log_probs = np.empty(count)
        pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in arrays]
        failed = self._functions.moses_rnn_network_score(
            ctypes.c_void_p(self._network),
            *pointers,
            ctypes.c_int64(count),
            log_probs.ctypes.data_as(ctypes.c_void_p),
        )
        if failed:
            raise MemoryError(f"cannot allocate memory for the states of {count:,} phrase pairs")
        return log_probs


def _weights(model: EncDec) -> Sequence[Tensor | None]:
    """All matrices in the order of native/network.h; contiguous float32 on the CPU, those that there are not None."""
    encoder, decoder = model.encoder, model.decoder
    summary = (encoder.V, encoder.b_V) if encoder.has_summary else (None, None)
    tensors = [*_tensors(encoder, CELL), *summary, *_tensors(decoder, CELL), *_tensors(decoder, READ_OUT)]
    return [None if tensor is None else tensor.detach().to("cpu", torch.float32).contiguous() for tensor in tensors]


def _tensors(part: Encoder | Decoder, names: Sequence[str]) -> list[Tensor]:
    return [getattr(part, name) for name in names]


def _checked(ids: Ids, lengths: Lengths, most: int) -> IdPhrases:
    """Ids and lengths as the library reads them without looking."""
    ids, lengths = (np.ascontiguousarray(array, np.int64) for array in (ids, lengths))
    if lengths.sum() != len(ids) or lengths.min(initial=0) < 0:
        raise ValueError(f"expected lengths that come to {len(ids):,} words, found {lengths.sum():,}")
    if len(ids) and not 0 <= ids.min() <= ids.max() < most:
        raise ValueError(f"expected ids from 0 to {most - 1:,}, found {ids.min():,} to {ids.max():,}")
    return ids, lengths
