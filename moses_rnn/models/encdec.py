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
        if seed is not None:
            self.initialise(seed)

    @torch.no_grad()
    def initialise(self, seed: int) -> None:
        """Draw the weights as the paper does (appendix A.1): N(0, 0.01²), recurrent matrices orthogonal, biases 0."""
        random = torch.Generator().manual_seed(seed)
        for name, tensor in self.named_parameters():
            if tensor.dim() == 1:
                tensor.zero_()
            elif ".U" in name:
                gaussian = torch.randn(tensor.shape, generator=random)
                tensor.copy_(torch.linalg.svd(gaussian)[0])
            else:
                tensor.copy_(torch.randn(tensor.shape, generator=random) * INITIAL_DEVIATION)

    def word_log_probs(self, sources: Batch, targets: Batch, source_of: Tensor) -> Tensor:
        """Score every target word, the closing ``</s>`` included, by log p(y_t | y_<t, e).

        Args:
            sources: S source phrases.
            targets: T target phrases.
            source_of: for each target its source's row; T.

        Returns:
            One value for each of ``targets.packed()``; nodes.
        """
        context = self.decoder.context(self.encoder(sources)).take(source_of)
        logits = self.decoder.read_out(*self.decoder.nodes(context, targets))  # nodes × K
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))  # never normalise in bfloat16
        return -torch.nn.functional.cross_entropy(logits, targets.packed(), reduction="none")


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
        self.has_summary = config.summary == "tanh"
        if self.has_summary:
            self.V, self.b_V = _matrix(H, H), _bias(H)

    def step(self, We: Tensor, W_ze: Tensor, W_re: Tensor, h: Tensor) -> Tensor:
        """One gated step; We, W_ze, W_re are ``W e(x_t) + b`` and its likes; all rows × H."""
        z = torch.sigmoid(W_ze + linear(h, self.U_z))
        r = torch.sigmoid(W_re + linear(h, self.U_r))
        h_tilde = torch.tanh(We + linear(r * h, self.U))
        return z * h + (1 - z) * h_tilde

    def forward(self, sources: Batch) -> Tensor:
        """The summary c of each source phrase; S × H."""
        e = embedding(sources.packed(), self.embedding)  # nodes × E
        inputs = [torch.split(linear(e, W, b), sources.active) for W, b in self._input_weights()]  # 3 × steps, rows × H
        h = inputs[0][0].new_zeros(sources.active[0], self.U.shape[0])  # S × H
        finished: list[Tensor] = []
        for rows, We, W_ze, W_re in zip(sources.active, *inputs, strict=True):
            finished.append(h[rows:])
            h = self.step(We, W_ze, W_re, h[:rows])
        last = torch.cat([h, *reversed(finished)])  # S × H; h_N of each phrase
        return torch.tanh(linear(last, self.V, self.b_V)) if self.has_summary else last

    def _input_weights(self) -> tuple[tuple[Tensor, Tensor], ...]:
        return (self.W, self.b), (self.W_z, self.b_z), (self.W_r, self.b_r)


class Context(NamedTuple):
    """All that the decoder computes from c, once for a source."""

    h_0: Tensor  # tanh(V' c + b_V'); S × H
    Cc: Tensor  # C c; S × H
    C_zc: Tensor  # C_z c + b'_z; S × H
    C_rc: Tensor  # C_r c + b'_r; S × H
    O_cc: Tensor  # O_c c + b_O; S × 2M

    def take(self, rows: Tensor) -> Context:
        """The same for chosen rows, repeated at will."""
        return Context(*(tensor.index_select(0, rows) for tensor in self))

    def first(self, rows: int) -> Context:
        """The same for the first rows."""
        return Context(*(tensor[:rows] for tensor in self))


class Decoder(nn.Module):
    """Summary c and target words to log-probabilities; c enters every gate and the read-out."""

    def __init__(self, config: EncDecConfig) -> None:
        super().__init__()
        self.config = config
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

    def context(self, c: Tensor) -> Context:
        """What depends on the source alone; c is S × H."""
        return Context(
            h_0=torch.tanh(linear(c, self.V, self.b_V)),
            Cc=linear(c, self.C),
            C_zc=linear(c, self.C_z, self.b_z),
            C_rc=linear(c, self.C_r, self.b_r),
            O_cc=linear(c, self.O_c, self.b_O),
        )

    def step(self, We: Tensor, W_ze: Tensor, W_re: Tensor, h: Tensor, context: Context) -> Tensor:
        """One gated step; We, W_ze, W_re are ``W' e(y_{t-1})`` and its likes; all rows × H."""
        z = torch.sigmoid(W_ze + linear(h, self.U_z) + context.C_zc)
        r = torch.sigmoid(W_re + linear(h, self.U_r) + context.C_rc)
        if self.config.decoder_reset == "after":
            h_tilde = torch.tanh(We + r * (linear(h, self.U) + context.Cc) + self.b)
        else:
            h_tilde = torch.tanh(We + linear(r * h, self.U) + context.Cc + self.b)
        return z * h + (1 - z) * h_tilde

    def nodes(self, context: Context, targets: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """What the read-out needs to predict each of ``targets.packed()``.

        Args:
            context: of each target's source; T rows.
            targets: T target phrases.

        Returns:
            h'_t (nodes × H), e(y_{t-1}) (nodes × E, zeros for the first word), O_c c + b_O (nodes × 2M).
        """
        e = self.previous_embeddings(targets)  # nodes × E
        inputs = [torch.split(linear(e, W), targets.active) for W in (self.W, self.W_z, self.W_r)]
        h = context.h_0  # T × H
        states: list[Tensor] = []
        for t, (rows, We, W_ze, W_re) in enumerate(zip(targets.active, *inputs, strict=True)):
            if t > 0 or self.config.first_step == "zero-embedding":
                h = self.step(We, W_ze, W_re, h[:rows], context.first(rows))
            states.append(h)
        return torch.cat(states), e, context.O_cc.index_select(0, targets.rows())

    def previous_embeddings(self, targets: Batch) -> Tensor:
        """e(y_{t-1}) for each node, where e(y_0) = 0; nodes × E."""
        nothing = self.embedding.new_zeros(targets.active[0], self.embedding.shape[1])
        previous = [targets.ids[:rows, t] for t, rows in enumerate(targets.active[1:])]
        return torch.cat([nothing, *(embedding(ids, self.embedding) for ids in previous)])

    def read_out(self, h: Tensor, e: Tensor, O_cc: Tensor) -> Tensor:
        """Unnormalised log p(y_t = · | y_<t, e); nodes × K."""
        s = linear(h, self.O_h) + linear(e, self.O_y) + O_cc  # s'_t; nodes × 2M
        s = s.view(len(s), -1, 2).amax(dim=2)  # maxout over the pairs (0, 1), (2, 3), …; nodes × M
        return linear(linear(s, self.G_r), self.G_l, self.b_G)
