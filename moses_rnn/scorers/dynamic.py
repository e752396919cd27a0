"""A language model that learns from the text that it scores."""

from __future__ import annotations

import numpy as np

from moses_rnn.errors import MosesRnnError, ScoreError, shown
from moses_rnn.networks.batches import Lengths
from moses_rnn.networks.dynamic import RATE, Learner
from moses_rnn.networks.hardware import HERE, Compute
from moses_rnn.networks.rnnlm import Values, on_device
from moses_rnn.networks.vocabulary import Ids
from moses_rnn.scorers.language_models import NetworkLanguageModel, Shares
from moses_rnn.scorers.open import Model
from moses_rnn.table.table_blocks import Phrases

LOWEST = -1000.0  # log p of a word, which no network gives that has not diverged
WORD, SENTENCE = MODES = "word", "sentence"  # after which is learned


class DynamicRnnlm(NetworkLanguageModel):
    """An RNNLM that learns from each sentence that it has scored, so that their order counts.

    Args:
        model: network and shortlist, which stay as they are.
        mode: one of MODES.
        compute: where and how.
        shares: of words outside the shortlist in the probability of ``<unk>``.
        rate: of learning.
    """

    def __init__(
        self,
        model: Model,
        mode: str,
        compute: Compute = HERE,
        shares: Shares | None = None,
        *,
        rate: float = RATE,
    ) -> None:
        network = on_device(model.network, compute.device, compute.dtype)
        self._learner = Learner(network, compute.dtype, rate)
        title = f"{model.architecture.title} that learns from the text"
        super().__init__(self._learner.scores, model.target_vocabulary, model.name, title, shares)
        self._mode, self._rate = mode, rate
        self._sentences = 0  # that were read, or begun

    def word_log_probs(self, sentences: Phrases) -> Values:
        """See `LanguageModel`; the sentences are learned from.

        Raises:
            MosesRnnError: the model diverged; the sentence is named.
        """
        return np.concatenate([np.zeros(0), *(self._read(row, sentence) for row, sentence in enumerate(sentences))])

    def _read(self, row: int, sentence: bytes) -> Values:
        self._sentences += 1
        try:
            return super().word_log_probs([sentence])
        except MosesRnnError as error:
            if isinstance(error, ScoreError):
                error.row = row
            error.add_advice(f"It was reading sentence {self._sentences:,}: {shown(sentence)}")
            raise

    def _score_ids(self, ids: Ids, lengths: Lengths) -> Values:
        """Of a single sentence, with a step after each word or behind it."""
        by_words = self._mode == WORD
        values = self._learner.read(ids.tolist()) if by_words else self._learner.scores.log_probs(ids, lengths)
        lowest = float(values.min(initial=0))
        if not lowest > LOWEST:
            raise MosesRnnError(
                f"dynamic evaluation diverged: expected log-probabilities above {LOWEST:g}, found {lowest:g}\n"
                f"  Learn at a lower rate than {self._rate:g}."
            )
        if not by_words:
            self._learner.learn(ids.tolist())
        return values
