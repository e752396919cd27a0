"""A recurrent language model that keeps learning from the text it scores (Mikolov et al. 2010, section 2, "dynamic").

The model scores a word before it learns from it, at a constant rate. Embedding, U and G take a gradient step, neither
clipped nor decayed; s_0 does not. When learning by sentences, the step uses the sum of the gradients of the sentence's
words; when learning by words, the earlier states of the sentence are not recomputed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from moses_rnn.errors import MosesRnnError, ScoreError, shown
from moses_rnn.networks.batches import Batch, Lengths
from moses_rnn.networks.hardware import HERE, Compute
from moses_rnn.networks.rnnlm import Rnnlm, SentenceScores, Values, grad_sums
from moses_rnn.networks.vocabulary import END_ID, Ids
from moses_rnn.scorers.language_models import NetworkLanguageModel, Shares
from moses_rnn.scorers.open import Model
from moses_rnn.table.table_blocks import Phrases

RATE = 0.003  # the paper's 0.1 is harmful: docs/architecture.md


class Learner:
    """A copy of a model that learns at a constant rate; scores use what it has learned so far."""

    def __init__(self, model: Rnnlm, compute: Compute = HERE, rate: float = RATE) -> None:
        self.scores = SentenceScores(model, compute.device, compute.dtype)
        self.model = self.scores.model.requires_grad_(True)
        self._rate = rate

    def learn(self, ids: Sequence[int]) -> None:
        """Take one step on a sentence, given without its end symbol."""
        weights = list(self.model.parameters())
        sentence = Batch.from_lists([ids], self.model.G.device)
        nats = -self.model.word_log_probs(sentence).sum()
        gradients = torch.autograd.grad(nats, weights)
        with torch.no_grad():
            for tensor, gradient in zip(weights, gradients, strict=True):
                tensor.sub_(gradient, alpha=self._rate)

    def read(self, ids: Sequence[int]) -> Values:
        """Return log p of a sentence's words and its end, taking a step after each; words + 1."""
        states, words = [self.model.first_states()], [self.model.vocabulary_size]  # words[i] leads to states[i + 1]
        values = []
        for word in [*ids, END_ID]:
            states.append(self.scores.next_states(torch.tensor(words[-1:], device=self.model.G.device), states[-1]))
            ((_, log_p),) = self.scores.next_log_probs(states[-1])
            values.append(float(log_p[0, word]))
            self._learn_word(log_p[0], word, states, words)
            words.append(word)
        return np.array(values, np.float64)

    @torch.no_grad()
    def _learn_word(self, log_p: Tensor, word: int, states: Sequence[Tensor], words: Sequence[int]) -> None:
        """Take one step on a word.

        `log_p` is over all words, K. `states` go from s_0 to the one that predicted the word, 1 × H each; `words` were
        read between them.
        """
        model = self.model
        error = log_p.exp()  # becomes the gradient of the logits
        error[word] -= 1
        after = torch.cat(list(states[1:]))
        grad_states = torch.zeros_like(after)
        grad_states[-1] = error @ model.G
        sums = grad_sums(grad_states, after, model.U, [1] * len(after), 0)
        above = torch.cat(list(states[:-1]))
        read = torch.tensor(words, device=sums.device)
        model.G.addr_(error, states[-1][0], alpha=-self._rate)
        model.U.addmm_(sums.T, above, alpha=-self._rate)
        model.embedding.index_add_(0, read, sums, alpha=-self._rate)


LOWEST = -1000.0  # log p of a word; below it, the network has diverged
WORD, SENTENCE = MODES = "word", "sentence"  # unit after which the model learns


class DynamicRnnlm(NetworkLanguageModel):
    """An RNNLM that learns from each sentence it scores, so their order matters; `mode` is one of MODES."""

    def __init__(
        self,
        model: Model,
        mode: str,
        compute: Compute = HERE,
        shares: Shares | None = None,
        *,
        rate: float = RATE,
    ) -> None:
        self._learner = Learner(model.network, compute, rate)
        title = f"{model.architecture.title} that learns from the text"
        super().__init__(self._learner.scores, model.target_vocabulary, model.name, title, shares)
        self._mode, self._rate = mode, rate
        self._sentences = 0  # sentences begun so far

    def word_log_probs(self, sentences: Phrases) -> Values:
        """See `LanguageModel`; the model learns from the sentences. Raise MosesRnnError if it diverges."""
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
        """Score a single sentence, taking a step after each word or after the sentence."""
        by_words = self._mode == WORD
        values = self._learner.read(ids.tolist()) if by_words else self._learner.scores.log_probs(ids, lengths)
        lowest = float(values.min(initial=0))
        if not lowest > LOWEST:
            raise MosesRnnError(
                f"dynamic evaluation diverged: expected log-probabilities above {LOWEST:g}, found {lowest:g}\n"
                f"  Use a lower --dynamic-rate than {self._rate:g}."
            )
        if not by_words:
            self._learner.learn(ids.tolist())
        return values
