"""The RNN Encoder-Decoder of Cho et al. (EMNLP 2014; arXiv 1406.1078v3, section 2 and appendix A).

Letters are the paper's: e is the source phrase, f the target phrase, so log p(f|e) is log p(target | source).
x_t and y_t are the t-th source and target word, e(·) an embedding, h and h' the states of encoder and decoder, c the
summary of the source phrase. H hidden units, E embedding dimensions, M maxout units, R output rank, K words.
A matrix W maps a column vector; on rows of states that is ``x @ W.T``, written ``linear(x, W)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, linear

from moses_rnn.models.batches import Batch
from moses_rnn.models.dropout import Drop, keep
from moses_rnn.models.recurrence import Recurrence, Steps
from moses_rnn.models.softmax import Passes, WordSample, chosen_log_probs, sampled_log_probs

INITIAL_DEVIATION = 0.01
SWITCHES = {
    "paper": {"summary": "tanh", "first_step": "zero-embedding", "decoder_reset": "after"},
    "groundhog": {"summary": "last", "first_step": "initial-state", "decoder_reset": "before"},
}


@dataclass(frozen=True)
class EncDecConfig:
    """Sizes and switches; `variant` names the three switches together (see SWITCHES)."""

    source_vocabulary_size: int  # with <unk> and </s>
    target_vocabulary_size: int
    hidden_size: int = 1000
    embedding_size: int = 100
    maxout_size: int = 500
    output_rank: int = 100
    variant: str = "paper"
    summary: str = "tanh"  # or "last": c = h_N
    first_step: str = "zero-embedding"  # or "initial-state": y_1 is predicted from h'_0
    decoder_reset: str = "after"  # or "before": r' gates h' before the product, and never C c


class EncDec(nn.Module):
    """Encoder and decoder; `state_dict` has the tensor names of the checkpoint format.

    Args:
        config: sizes and switches.
        seed: of the initial weights; equal seeds give equal weights. None leaves them unset.
    """

    def __init__(self, config: EncDecConfig, *, seed: int | None) -> None:
        super().__init__()
        self.config = config
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self.passes = Passes.eager()
        if seed is not None:
            self.initialise(seed)

    @torch.no_grad()
    def initialise(self, seed: int, deviation: float = INITIAL_DEVIATION) -> None:
        """Draw the weights as the paper does (appendix A.1): N(0, 0.01²), recurrent matrices orthogonal, biases 0.

        Args:
            seed: equal seeds give equal weights.
            deviation: of the matrices that are not recurrent; the paper's is 0.01.
        """
        random = torch.Generator().manual_seed(seed)
        for name, tensor in self.named_parameters():
            if tensor.dim() == 1:
                tensor.zero_()
            elif ".U" in name:
                gaussian = torch.randn(tensor.shape, generator=random)
                tensor.copy_(torch.linalg.svd(gaussian)[0])
            else:
                tensor.copy_(torch.randn(tensor.shape, generator=random) * deviation)

    def compile_elementwise(self) -> None:
        """Let torch fuse the work between products, for a long training; see `fused`."""
        self.passes = Passes.compiled()
        self.encoder.do = self.decoder.do = Steps.compiled()

    def word_log_probs(
        self,
        sources: Batch,
        targets: Batch,
        source_of: Tensor,
        product: torch.dtype | None = None,
        sample: WordSample | None = None,
        drop: Drop = keep,
    ) -> Tensor:
        """Score every target word, the closing ``</s>`` included, by log p(y_t | y_<t, e).

        Args:
            sources: S source phrases.
            targets: T target phrases.
            source_of: for each target its source's row; T.
            product: the type that matrix products are computed in; by default that of the weights.
            sample: estimate the normalisation by these words, for training with a large shortlist.
            drop: leaves units out of embeddings and maxout, for training.

        Returns:
            One value for each of ``targets.packed()``; nodes.
        """
        product = product or self.decoder.U.dtype
        context = self.decoder.context(self.encoder(sources, product, drop), product).take(source_of)
        low = self.decoder.read_out(*self.decoder.nodes(context, targets, product, drop), product, drop)
        of_words = low, self.decoder.G_l, self.decoder.b_G, targets.packed(), product
        return chosen_log_probs(*of_words, self.passes) if sample is None else sampled_log_probs(*of_words, sample)


def times(x: Tensor, matrix: Tensor, product: torch.dtype) -> Tensor:
    """Rows times a matrix, computed in a type of its own and given back in theirs."""
    return linear(x.to(product), matrix.to(product)).to(x.dtype)


def _matrix(rows: int, columns: int) -> nn.Parameter:
    return nn.Parameter(torch.empty(rows, columns))


def _bias(size: int) -> nn.Parameter:
    return nn.Parameter(torch.empty(size))


class Encoder(nn.Module):
    """Source words to the summary c. The reset gate acts before the product; z keeps the old state."""

    def __init__(self, config: EncDecConfig) -> None:
        super().__init__()
        H, E = config.hidden_size, config.embedding_size
        self.embedding = _matrix(config.source_vocabulary_size, E)
        self.W, self.W_z, self.W_r = _matrix(H, E), _matrix(H, E), _matrix(H, E)
        self.U, self.U_z, self.U_r = _matrix(H, H), _matrix(H, H), _matrix(H, H)
        self.b, self.b_z, self.b_r = _bias(H), _bias(H), _bias(H)
        self.do = Steps.eager()
        self.has_summary = config.summary == "tanh"
        if self.has_summary:
            self.V, self.b_V = _matrix(H, H), _bias(H)

    def forward(self, sources: Batch, product: torch.dtype, drop: Drop = keep) -> Tensor:
        """The summary c of each source phrase; S × H."""
        e = drop(embedding(sources.packed(), self.embedding))  # nodes × E
        We = times(e, torch.cat([self.W_z, self.W_r, self.W]), product) + torch.cat([self.b_z, self.b_r, self.b])
        h_0 = We.new_zeros(sources.active[0], self.U.shape[0])  # S × H
        nothing = We.new_zeros(1, 1).expand(sources.active[0], We.shape[1])
        recurrence = Recurrence(self.U_z, self.U_r, self.U, reset_after=False, product=product, do=self.do)
        last = recurrence.states(We, nothing, h_0, sources.active).index_select(0, sources.last())  # S × H; h_N
        return torch.tanh(times(last, self.V, product) + self.b_V) if self.has_summary else last


class Context(NamedTuple):
    """All that the decoder computes from c, once for a source."""

    h_0: Tensor  # tanh(V' c + b_V'); S × H
    gates: Tensor  # C_z c + b'_z, C_r c + b'_r, C c: what c adds inside z', r' and h~'; S × 3H
    O_cc: Tensor  # O_c c + b_O; S × 2M

    def take(self, rows: Tensor) -> Context:
        """The same for chosen rows, repeated at will."""
        return Context(*(tensor.index_select(0, rows) for tensor in self))


class Decoder(nn.Module):
    """Summary c and target words to log-probabilities; c enters every gate and the read-out."""

    def __init__(self, config: EncDecConfig) -> None:
        super().__init__()
        self.config = config
        self.do = Steps.eager()
        H, E, M = config.hidden_size, config.embedding_size, config.maxout_size
        K, R = config.target_vocabulary_size, config.output_rank
        self.embedding = _matrix(K, E)
        self.W, self.W_z, self.W_r = _matrix(H, E), _matrix(H, E), _matrix(H, E)
        self.U, self.U_z, self.U_r = _matrix(H, H), _matrix(H, H), _matrix(H, H)
        self.b, self.b_z, self.b_r = _bias(H), _bias(H), _bias(H)
        self.V, self.b_V = _matrix(H, H), _bias(H)
        self.C, self.C_z, self.C_r = _matrix(H, H), _matrix(H, H), _matrix(H, H)
        self.O_h, self.O_c, self.O_y, self.b_O = _matrix(2 * M, H), _matrix(2 * M, H), _matrix(2 * M, E), _bias(2 * M)
        self.G_r, self.G_l, self.b_G = _matrix(R, M), _matrix(K, R), _bias(K)

    def context(self, c: Tensor, product: torch.dtype) -> Context:
        """What depends on the source alone; c is S × H."""
        c = c.to(product)
        C_zc, C_rc, Cc = (linear(c, C.to(product)).to(self.b.dtype) for C in (self.C_z, self.C_r, self.C))
        return Context(
            h_0=torch.tanh(linear(c, self.V.to(product)) + self.b_V),
            gates=torch.cat([C_zc + self.b_z, C_rc + self.b_r, Cc], 1),
            O_cc=linear(c, self.O_c.to(product)) + self.b_O,
        )

    def nodes(
        self, context: Context, targets: Batch, product: torch.dtype, drop: Drop = keep
    ) -> tuple[Tensor, Tensor, Tensor]:
        """What the read-out needs to predict each of ``targets.packed()``.

        Args:
            context: of each target's source; T rows.
            targets: T target phrases.
            product: the type that matrix products are computed in.
            drop: leaves units out of embeddings.

        Returns:
            h'_t (nodes × H), e(y_{t-1}) (nodes × E, zeros for the first word), O_c c + b_O (nodes × 2M).
        """
        e = drop(self.previous_embeddings(targets))  # nodes × E
        skipped = 0 if self.config.first_step == "zero-embedding" else 1  # steps: y_1 is predicted from h'_0
        stepped = targets.active[skipped:]
        first = targets.active[0] * skipped
        no_b = torch.zeros_like(self.b)
        We = times(e[first:], torch.cat([self.W_z, self.W_r, self.W]), product) + torch.cat([no_b, no_b, self.b])
        reset_after = self.config.decoder_reset == "after"
        recurrence = Recurrence(self.U_z, self.U_r, self.U, reset_after, product, self.do)
        states = recurrence.states(We, context.gates, context.h_0, stepped)
        h = torch.cat([context.h_0, states]) if skipped else states
        return h, e, context.O_cc.index_select(0, targets.rows())

    def previous_embeddings(self, targets: Batch) -> Tensor:
        """e(y_{t-1}) for each node, where e(y_0) = 0; nodes × E."""
        nothing = self.embedding.new_zeros(targets.active[0], self.embedding.shape[1])
        previous = [targets.ids[:rows, t] for t, rows in enumerate(targets.active[1:])]
        return torch.cat([nothing, *(embedding(ids, self.embedding) for ids in previous)])

    def read_out(self, h: Tensor, e: Tensor, O_cc: Tensor, product: torch.dtype, drop: Drop = keep) -> Tensor:
        """G_r s'_t: what each node predicts, before the words; nodes × R."""
        s = times(h, self.O_h, product) + times(e, self.O_y, product) + O_cc  # s'_t; nodes × 2M
        s = torch.maximum(*s.view(len(s), -1, 2).unbind(2))  # maxout over the pairs (0, 1), (2, 3), …; nodes × M
        return times(drop(s), self.G_r, product)
