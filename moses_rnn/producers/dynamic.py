"""Language models that learn from what they read, of texts and of n-best lists.

Of a list all hypotheses of a sentence are scored by what was learned before; then the first one is learned from. So a
score depends on the lists before, which must come in order, and to one worker.
"""

from __future__ import annotations

import threading

import numpy as np

from moses_rnn.errors import MosesRnnError, ScoreError, shown
from moses_rnn.inference.dynamic import RATE, Learner
from moses_rnn.inference.rnnlm import Values
from moses_rnn.models.batches import Lengths
from moses_rnn.models.checkpoint import Checkpoint
from moses_rnn.models.vocabulary import Ids
from moses_rnn.producers.base import HERE, Compute, Phrases
from moses_rnn.producers.language_models import Marks, NetworkLanguageModel, Shares
from moses_rnn.producers.rnnlm import on_device

LOWEST = -1000.0  # log p of a word, which no network gives that has not diverged
__all__ = ["MODES", "RATE", "SENTENCE", "WORD", "DynamicRnnlm", "Reader"]
WORD, SENTENCE = MODES = "word", "sentence"  # after which is learned


class DynamicRnnlm(NetworkLanguageModel):
    """An RNNLM whose scores are by what it has learned so far: log p of a target sentence.

    Args:
        checkpoint: network and shortlist, which stay as they are.
        compute: where and how; nothing is compiled.
        shares: of words outside the shortlist in the probability of ``<unk>``.
        rate: of learning.
        reach: how many steps back the error of a word is followed; 0: to its sentence's beginning.
    """

    name = "RNNLM"

    def __init__(
        self,
        checkpoint: Checkpoint,
        compute: Compute = HERE,
        shares: Shares | None = None,
        *,
        rate: float = RATE,
        reach: int = 0,
    ) -> None:
        self.title = f"RNNLM that goes on learning, at a rate of {rate:g}, from what came before, whose order counts"
        super().__init__(checkpoint.target_vocabulary, shares)
        self._rate = rate
        self._learner = Learner(on_device(checkpoint.model, compute), compute.dtype, rate, reach)
        self._worker: int | None = None

    def learn(self, sentence: bytes) -> None:
        """One step from a sentence."""
        self._refuse_another_worker()
        self._learner.learn(self._ids_of([sentence])[0].tolist())

    def read(self, sentences: Phrases, mode: str) -> Values:
        """`word_log_probs` with a step after each word or each sentence, which is scored before.

        Raises:
            MosesRnnError: it diverged.
        """
        return np.concatenate([np.zeros(0), *(self._read(sentence, mode) for sentence in sentences)])

    def _read(self, sentence: bytes, mode: str) -> Values:
        if mode == SENTENCE:
            values = self.word_log_probs([sentence])
            self.learn(sentence)
        else:
            self._refuse_another_worker()
            ids, lengths = self._ids_of([sentence])
            values = self._with_shares(self._learner.read(ids.tolist()), [sentence], ids, lengths)
            self._refuse_divergence(values)
        return values

    def _of_ids(self, ids: Ids, lengths: Lengths) -> Values:
        self._refuse_another_worker()
        values = self._learner.scores.log_probs(ids, lengths)
        self._refuse_divergence(values)
        return values

    def _refuse_divergence(self, values: Values) -> None:
        lowest = float(values.min(initial=0))
        if not lowest > LOWEST:
            raise MosesRnnError(
                f"dynamic evaluation diverged: expected log-probabilities above {LOWEST:g}, found {lowest:g}\n"
                f"  Learn at a lower rate than {self._rate:g}."
            )

    def _refuse_another_worker(self) -> None:
        """Two would each learn in their own order.

        Raises:
            MosesRnnError: another thread scores than the first one.
        """
        here = threading.get_ident()
        if self._worker not in (None, here):
            raise MosesRnnError("a model that learns while it scores needs one worker, found several")
        self._worker = here


class Reader:
    """A language model that learns while it scores a text; see `LanguageModel`.

    Args:
        model: that learns.
        mode: one of MODES.
    """

    def __init__(self, model: DynamicRnnlm, mode: str) -> None:
        self._model, self._mode = model, mode
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
            return self._model.read([sentence], self._mode)
        except MosesRnnError as error:
            if isinstance(error, ScoreError):
                error.row = row
            error.add_advice(f"It was reading sentence {self._sentences:,}: {shown(sentence)}")
            raise

    def unknown(self, sentences: Phrases) -> Marks:
        """See `LanguageModel`."""
        return self._model.unknown(sentences)
