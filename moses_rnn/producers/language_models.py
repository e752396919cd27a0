"""Language models of the target side: log p of every word of a sentence and of its end, natural logarithms.

``<s>`` stands before a sentence and is never predicted; ``</s>`` is. A word that is spelled as one of them is unknown.
All of the models are score producers too: the score of a sentence is the sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from moses_rnn.errors import InputError, MosesRnnError
from moses_rnn.formats.phrase_forms import words
from moses_rnn.models.cslm import CslmCheckpoint, CslmScorer, n_grams_of
from moses_rnn.models.vocabulary import END_ID, UNKNOWN_ID
from moses_rnn.producers.phrases import PRECISIONS, PhraseIds, Phrases, Scores, Tally

if TYPE_CHECKING:
    from moses_rnn.producers.backoff import Backoff

Values = npt.NDArray[np.float64]
LN_10 = math.log(10)
BEGIN, END, UNKNOWN = b"<s>", b"</s>", b"<unk>"


class LanguageModel(Protocol):
    """What gives every word of a sentence a probability."""

    def word_log_probs(self, sentences: Phrases) -> Values:
        """log p of all words and end symbols, sentences end to end: (words + 1 each)."""


def sums(values: Values, sentences: Phrases) -> Scores:
    """The sum of each sentence's values; sentences × 1."""
    tokens = np.array([len(words(sentence)) + 1 for sentence in sentences], np.int64)
    totals = np.zeros(len(tokens))
    # No differences of running sums: their rounding would depend on the sentences before.
    np.add.at(totals, np.repeat(np.arange(len(tokens)), tokens), values)
    return totals[:, None]


def words_of(sentence: bytes) -> list[bytes]:
    """Words of a sentence; those that are spelled as a boundary are unknown ones, as they are to a CSLM."""
    return [UNKNOWN if word in (BEGIN, END) else word for word in words(sentence)]


class CslmProducer:
    """A CSLM: log p of a target sentence; words outside the shortlist count as ``<unk>``, or are backed off.

    Args:
        checkpoint: network and shortlist.
        device: of the network.
        precision: of its matrix products.
        backoff: shares the probability of ``<unk>`` out among the words it stands for.
    """

    name = "CSLM"
    num_scores = 1

    def __init__(
        self, checkpoint: CslmCheckpoint, device: str = "cpu", precision: str = "fp32", backoff: Backoff | None = None
    ) -> None:
        self._scorer = CslmScorer(checkpoint.model.to(device), PRECISIONS[precision])
        self._ids_of = PhraseIds(checkpoint.vocabulary)
        self._order = checkpoint.model.config.order
        self._backoff = backoff
        rest = "backed off to an n-gram model" if backoff else "counted as <unk>"
        self.meaning = f"log p(target) of the CSLM, natural, </s> included; words outside the shortlist {rest}"

    def word_log_probs(self, sentences: Phrases) -> Values:
        """See `LanguageModel`."""
        n_grams = self.n_grams(sentences)
        values = self._scorer.log_probs(n_grams)
        if self._backoff:
            unknown = np.flatnonzero(n_grams[:, -1] == UNKNOWN_ID)
            values[unknown] += self._backoff.log_shares(sentences, unknown)
        return values

    def log_probs(self, _sources: Phrases, targets: Phrases, _tally: Tally | None = None) -> Scores:
        """Natural logarithms; targets × 1."""
        return sums(self.word_log_probs(targets), targets)

    def unknown(self, sentences: Phrases) -> npt.NDArray[np.bool_]:
        """Which words are outside the shortlist; as `word_log_probs`."""
        unknown: npt.NDArray[np.bool_] = self.n_grams(sentences)[:, -1] == UNKNOWN_ID
        return unknown

    def n_grams(self, sentences: Phrases) -> npt.NDArray[np.int64]:
        """One n-gram for each word and end; n × order."""
        if not sentences:
            return np.zeros((0, self._order), np.int64)
        ids, lengths = self._ids_of(sentences)
        begin = self._scorer.model.config.vocabulary_size
        padded = lengths + self._order  # (order - 1) × <s>, the words, </s>
        firsts = np.cumsum(padded) - padded
        flat = np.full(int(padded.sum()), begin, np.int64)
        within = np.arange(len(ids)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        flat[np.repeat(firsts + self._order - 1, lengths) + within] = ids
        flat[firsts + padded - 1] = END_ID
        return n_grams_of(flat, np.flatnonzero(flat != begin), self._order)


class KenlmProducer:
    """An n-gram model by KenLM: log p of a target sentence, natural, whatever the file says in log10.

    Args:
        path: an ARPA file or a binary one.

    Raises:
        MosesRnnError: the module kenlm is not installed.
        InputError: it cannot read the file.
    """

    name = "KENLM"
    num_scores = 1
    meaning = "log p(target) of an n-gram model by KenLM, natural, </s> included"

    def __init__(self, path: Path | str) -> None:
        try:
            import kenlm  # noqa: PLC0415, an extra
        except ImportError as error:
            needs = "it is compiled on installation, which needs a C++ compiler"
            raise MosesRnnError(f"kenlm is not installed: pip install 'moses-rnn[lm]' ({needs})") from error
        self._kenlm: Any = kenlm
        try:
            config = kenlm.Config()
            config.show_progress = False
            config.arpa_complain = kenlm.ARPALoadComplain.NONE  # a binary file would not say which words it knows
            self.model: Any = kenlm.Model(str(path), config)
        except (OSError, RuntimeError) as error:
            reason = str(error).split("\n")[0]
            raise InputError(f"{path}: expected a language model that KenLM reads, found: {reason}") from error
        self.order: int = self.model.order

    def word_log_probs(self, sentences: Phrases) -> Values:
        """See `LanguageModel`."""
        values = [value for sentence in sentences for value in self._of_sentence(words_of(sentence))]
        return LN_10 * np.array(values, np.float64)

    def log_probs(self, _sources: Phrases, targets: Phrases, _tally: Tally | None = None) -> Scores:
        """Natural logarithms; targets × 1."""
        return sums(self.word_log_probs(targets), targets)

    def unknown(self, sentences: Phrases) -> npt.NDArray[np.bool_]:
        """Which words the model does not know; as `word_log_probs`."""
        found = [[text(word) not in self.model for word in words_of(sentence)] + [False] for sentence in sentences]
        return np.array([value for sentence in found for value in sentence], np.bool_)

    def _of_sentence(self, sentence: Sequence[bytes]) -> list[float]:
        """log10 p of every word and of the end."""
        before, after = self.begin(), self.state()
        values = []
        for word in [*sentence, END]:
            values.append(self.model.BaseScore(before, text(word), after))
            before, after = after, before
        return values

    def state(self) -> Any:
        """A state to write into."""
        return self._kenlm.State()

    def begin(self) -> Any:
        """The state at the begin of a sentence."""
        state = self.state()
        self.model.BeginSentenceWrite(state)
        return state

    def nothing(self) -> Any:
        """The state in which nothing is known of the words before."""
        state = self.state()
        self.model.NullContextWrite(state)
        return state


def text(word: bytes) -> str:
    """A word as kenlm takes it; one that it cannot be asked for (no UTF-8, or a NUL, where it stops) is unknown."""
    try:
        decoded = word.decode("utf-8")
    except UnicodeDecodeError:
        return UNKNOWN.decode()
    return UNKNOWN.decode() if "\0" in decoded else decoded
