"""Training, lever by lever, as ratios taken in one run.

    python benchmarks/train.py PHRASE_TABLE [--preset paper] [--pairs N] [--minutes M] [--json FILE]

The first line is a naive loop: padded minibatches of 64 sorted over ten, the whole softmax, float32, torch's Adadelta.
Each further line switches one lever on. All learn the same pairs from the same initial weights; the held-out cost
stands beside the speed.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, embedding, linear

from moses_rnn.models.encdec import EncDec
from moses_rnn.training.config import TrainingConfig
from moses_rnn.training.corpus import Corpus, Positions
from moses_rnn.training.trainer import by_length

IGNORED = -100  # by cross_entropy
WARM_UP = 3  # steps that are not timed


class NaiveTrainer:
    """Everything padded to the longest phrase of the minibatch, one operation after the other."""

    def __init__(self, model: EncDec, corpus: Corpus, config: TrainingConfig) -> None:
        self.model, self.corpus, self.config = model, corpus, config
        self._optimiser = torch.optim.Adadelta(
            model.parameters(), lr=config.learning_rate, rho=config.rho, eps=config.epsilon, foreach=False
        )

    def learn(self, rows: Positions) -> None:
        """One gradient step."""
        loss = self.loss(by_length(self.corpus, rows))
        self._optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip_norm, foreach=False)
        self._optimiser.step()

    def loss(self, rows: Positions) -> Tensor:
        """-log p of a pair, averaged over the pairs."""
        (source, source_mask), (target, target_mask) = self._padded(rows)
        encoder, decoder = self.model.encoder, self.model.decoder
        h = torch.zeros(len(rows), self.model.config.hidden_size)
        for t in range(source.shape[1]):
            e = embedding(source[:, t], encoder.embedding)
            z = torch.sigmoid(linear(e, encoder.W_z, encoder.b_z) + linear(h, encoder.U_z))
            r = torch.sigmoid(linear(e, encoder.W_r, encoder.b_r) + linear(h, encoder.U_r))
            new = torch.tanh(linear(e, encoder.W, encoder.b) + linear(r * h, encoder.U))
            h = torch.where(source_mask[:, t, None], z * h + (1 - z) * new, h)
        c = torch.tanh(linear(h, encoder.V, encoder.b_V))
        h = torch.tanh(linear(c, decoder.V, decoder.b_V))
        Cc, C_zc, C_rc = linear(c, decoder.C), linear(c, decoder.C_z, decoder.b_z), linear(c, decoder.C_r, decoder.b_r)
        O_cc = linear(c, decoder.O_c, decoder.b_O)
        e = torch.zeros(len(rows), self.model.config.embedding_size)
        costs = []
        for t in range(target.shape[1]):
            z = torch.sigmoid(linear(e, decoder.W_z) + linear(h, decoder.U_z) + C_zc)
            r = torch.sigmoid(linear(e, decoder.W_r) + linear(h, decoder.U_r) + C_rc)
            new = torch.tanh(linear(e, decoder.W) + r * (linear(h, decoder.U) + Cc) + decoder.b)
            h = z * h + (1 - z) * new
            s = (linear(h, decoder.O_h) + linear(e, decoder.O_y) + O_cc).view(len(rows), -1, 2).amax(2)
            logits = linear(linear(s, decoder.G_r), decoder.G_l, decoder.b_G)
            words = target[:, t].masked_fill(~target_mask[:, t], IGNORED)
            costs.append(cross_entropy(logits, words, reduction="sum", ignore_index=IGNORED))
            e = embedding(target[:, t], decoder.embedding)
        return torch.stack(costs).sum() / len(rows)

    def _padded(self, rows: Positions) -> list[tuple[Tensor, Tensor]]:
        sides = []
        for phrases in (self.corpus.source, self.corpus.target):
            flat, lengths = phrases.take(rows)
            ids, first = torch.full((len(rows), int(lengths.max()) + 1), 1), 0
            for row, length in enumerate(lengths.tolist()):
                ids[row, :length] = torch.from_numpy(flat[first : first + length])
                first += length
            mask = torch.arange(ids.shape[1])[None, :] <= torch.from_numpy(lengths)[:, None]
            sides.append((ids, mask))
        return sides
