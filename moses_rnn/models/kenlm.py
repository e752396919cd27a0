"""An n-gram model by KenLM as a language model of target sentences."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from moses_rnn.errors import InputError, MosesRnnError
from moses_rnn.models.language_models import LN_10, Marks, SentenceScorer, check_words, text, words_of
from moses_rnn.networks.batches import Values
from moses_rnn.networks.vocabulary import END
from moses_rnn.table.table_blocks import Phrases

# KenLM's messages: Cannot read model 'path' (file:line in function threw Kind[ because `condition']. reason)
THROWN = re.compile(r"Cannot read model '.*?' \((?:\S+ in .*? threw [\w:]+(?: because `.*?')?\. )?(.*)\)", re.DOTALL)

OTHER_FILE = re.compile(r'first non-empty line was ".*" not')  # messages must not repeat that line


class KenlmScorer(SentenceScorer):
    """An n-gram model in KenLM, from an ARPA file or a binary file.

    It gives the natural log p of a target sentence, although the file has log10.
    """

    name = "KENLM"
    meaning = "log p(target) of an n-gram model by KenLM, natural, </s> included"

    def __init__(self, path: Path | str) -> None:
        try:
            import kenlm  # noqa: PLC0415, optional dependency
        except ImportError as error:
            needs = "installation compiles it, which needs a C++ compiler"
            raise MosesRnnError(f"kenlm is not installed: pip install 'moses-rnn[lm]' ({needs})") from error
        self._kenlm: Any = kenlm
        try:
            config = kenlm.Config()
            config.show_progress = False
            config.arpa_complain = kenlm.ARPALoadComplain.NONE  # it suggests binary files
            self._model: Any = kenlm.Model(os.fsencode(path), config)
        except (OSError, RuntimeError) as error:
            raise InputError(f"{path}: expected a language model that KenLM reads, found: {_reason(error)}") from error
        self.order: int = self._model.order

    def word_log_probs(self, sentences: Phrases) -> Values:
        """See `LanguageModel`."""
        values = [value for sentence in sentences for value in self._score_sentence(words_of(sentence))]
        natural = LN_10 * np.array(values, np.float64)
        check_words(self.name, natural, sentences)
        return natural

    def knows(self, word: bytes) -> bool:
        """Whether the model knows a word."""
        return text(word) in self._model

    def unknown(self, sentences: Phrases) -> Marks:
        """See `LanguageModel`."""
        unknown = [not self.knows(word) for sentence in sentences for word in [*words_of(sentence), END]]
        return np.array(unknown, np.bool_)

    def step(self, state: Any, word: bytes) -> tuple[float, Any]:
        """Return log10 p of a word after a state, and the next state."""
        after = self._kenlm.State()
        return self._model.BaseScore(state, text(word), after), after

    def begin(self) -> Any:
        """Return the state at the beginning of a sentence."""
        state = self._kenlm.State()
        self._model.BeginSentenceWrite(state)
        return state

    def nothing(self) -> Any:
        """Return the state of an empty context."""
        state = self._kenlm.State()
        self._model.NullContextWrite(state)
        return state

    def _score_sentence(self, sentence: Sequence[bytes]) -> Iterator[float]:
        """Yield log10 p of each word and of the end."""
        state = self.begin()
        for word in [*sentence, END]:
            log10_p, state = self.step(state, word)
            yield log10_p


def _reason(error: Exception) -> str:
    """Return KenLM's error message in one line, without positions in its source code."""
    message = str(error)
    thrown = THROWN.fullmatch(message)
    reason = (thrown[1] if thrown else message).split("\n")[0].strip()
    return OTHER_FILE.sub("first non-empty line was not", reason)
