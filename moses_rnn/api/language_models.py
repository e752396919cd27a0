"""A language model of the target side, loaded from Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import numpy as np
import torch

from moses_rnn.api.computing import PAIRS, Floats, Options, scored
from moses_rnn.api.pairs import PathLike, Text, check_range, texts_of
from moses_rnn.scorers.open import Model, open_language_model
from moses_rnn.table.table_blocks import Pairs


class LanguageModel:
    """A network that gives log p of sentences, as `moses_rnn.load_language_model` returns it.

    Sentences are str, which counts as UTF-8, or bytes: words with blanks between. Log-probabilities are natural, with
    the end symbol; words outside the shortlist count as ``<unk>``.
    """

    def __init__(self, model: Model, options: Options) -> None:
        self._model = model
        self._options = options
        self._compute = options.writing([model])
        self._scorer = model.make_language_model(self._compute)

    def __repr__(self) -> str:
        words, how = len(self._model.target_vocabulary), f"{self._compute.device}, {self._compute.precision}"
        return f"<moses_rnn.LanguageModel {str(self.folder)!r}: {self.meaning}; {words:,} words; {how}>"

    @property
    def folder(self) -> Path:
        """Where it was read from."""
        return self._model.folder

    @property
    def network(self) -> str:
        """What it is, such as ``CSLM``."""
        return self._model.title

    @property
    def name(self) -> str:
        """Of its score, as n-best lists have it."""
        return self._model.name

    @property
    def meaning(self) -> str:
        """What its score is, in words."""
        return self._scorer.meaning

    def score(self, sentences: Iterable[Text]) -> Floats:
        """log p of each sentence; as many, float64.

        Raises:
            ArgumentError: something is no text.
        """
        return np.concatenate([np.zeros(0), *self._chunks(texts_of("sentences", sentences), PAIRS)])

    def score_iter(self, sentences: Iterable[Text], *, chunk: int = PAIRS) -> Iterator[float]:
        """log p of each sentence of a stream of any length, one after the other; raises as `score`.

        Args:
            sentences: read a few chunks ahead.
            chunk: sentences that are scored together.
        """
        size = check_range("chunk", chunk)
        return chain.from_iterable(map(np.ndarray.tolist, self._chunks(texts_of("sentences", sentences), size)))

    def word_scores(self, sentence: Text) -> Floats:
        """log p of each word of a sentence after those before it, then of ``</s>``; words + 1, float64.

        Raises:
            ArgumentError: it is no text.
        """
        return self._scorer.word_log_probs(list(texts_of("sentence", [sentence])))

    def _chunks(self, sentences: Iterator[bytes], size: int) -> Iterator[Floats]:
        return scored(sentences, self._log_probs, 1, size)

    def _log_probs(self, sentences: list[bytes]) -> Floats:
        return self._scorer.log_probs(Pairs(sentences, sentences))[:, 0]


def load_language_model(
    folder: PathLike, *, device: str | torch.device = "auto", precision: str = "fp32", threads: int | None = None
) -> LanguageModel:
    """Load a language model from what moses-rnn cslm train has written.

    Args:
        folder: of the model.
        device: see `load`.
        precision: see `load`.
        threads: see `load`.

    Raises:
        ArgumentError: an option is not possible; it is named.
        CheckpointError: the folder cannot be read, or is of a network of pairs.
    """
    options = Options.checked(device, precision, threads)
    model = LanguageModel(open_language_model(Path(folder)), options)
    options.set_threads()
    return model
