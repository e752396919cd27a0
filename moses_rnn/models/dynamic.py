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
from moses_rnn.models.language_models import NetworkLanguageModel, Shares
from moses_rnn.models.model import Model
from moses_rnn.networks.batches import Batch, Lengths, Values
from moses_rnn.networks.compute import HERE, Compute
from moses_rnn.networks.rnnlm import SentenceScores, grad_sums
from moses_rnn.networks.vocabulary import END_ID, Ids
from moses_rnn.table.table_blocks import Phrases

RATE = 0.003  # the paper's 0.1 is harmful: docs/all-results.md
LOWEST = -1000.0  # log p of a word; below it, the network has diverged
WORD, SENTENCE = MODES = "word", "sentence"  # unit after which the model learns


class DynamicRnnlm(NetworkLanguageModel):
    """An RNNLM that learns from each sentence it scores, so their order matters.

    `mode` is one of MODES. `learner` is a copy of the model's network: scores use what it has learned so far.
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
        self._scores = SentenceScores(model.network, compute.device, compute.dtype)
        self.learner = self._scores.model.requires_grad_(True)
        title = f"{model.architecture.title} that learns from the text"
        super().__init__(self._scores, model.target_vocabulary, model.name, title, shares)
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
        values = self._learn_words(ids.tolist()) if by_words else self._scores.log_probs(ids, lengths)
        lowest = float(values.min(initial=0))
        if not lowest > LOWEST:
            raise MosesRnnError(
                f"dynamic evaluation diverged: expected log-probabilities above {LOWEST:g}, found {lowest:g}\n"
                f"  Use a lower --dynamic-rate than {self._rate:g}."
            )
        if not by_words:
            self._learn_sentence(ids.tolist())
        return values

    def _learn_sentence(self, ids: Sequence[int]) -> None:
        weights = list(self.learner.parameters())
        sentence = Batch.from_lists([ids], self.learner.G.device)
        nats = -self.learner.word_log_probs(sentence).sum()
        gradients = torch.autograd.grad(nats, weights)
        with torch.no_grad():
            for tensor, gradient in zip(weights, gradients, strict=True):
                tensor.sub_(gradient, alpha=self._rate)

    def _learn_words(self, ids: Sequence[int]) -> Values:
        """Return log p of a sentence's words and its end, taking a step after each; words + 1."""
        model = self.learner
        states, words = [model.first_states()], [model.vocabulary_size]  # words[i] leads to states[i + 1]
        values = []
        for word in [*ids, END_ID]:
            states.append(self._scores.next_states(torch.tensor(words[-1:], device=model.G.device), states[-1]))
            ((_, log_p),) = self._scores.next_log_probs(states[-1])
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
        model = self.learner
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
