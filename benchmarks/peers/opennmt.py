"""Phrase pairs a second with OpenNMT-py: ``python benchmarks/peers/opennmt.py PHRASE_TABLE [--pairs N]``.

A GRU encoder-decoder at sizes near the paper's, with random weights and without attention; a full matrix stands before
the words. Needs ``pip install OpenNMT-py``.
"""

from __future__ import annotations

import torch
from side_by_side import Ids, Score, compare, padded
from torch import nn

from moses_rnn.scorers.open import Model

try:
    from onmt.decoders import StdRNNDecoder
    from onmt.encoders import RNNEncoder
    from onmt.models import NMTModel
    from onmt.modules import Embeddings
except ImportError as missing:
    raise SystemExit(f"skipped: OpenNMT-py is not installed ({missing})") from missing

END = 1


def score_of(model: Model) -> Score:
    """OpenNMT-py's network at a model's sizes."""
    sizes = model.network.config
    H, E = sizes.hidden_size, sizes.embedding_size
    words = sizes.source_vocabulary_size, sizes.target_vocabulary_size
    begin, pad = words[1], words[1] + 1  # of target words
    source_embedding, target_embedding = Embeddings(E, words[0] + 1, words[0]), Embeddings(E, words[1] + 2, pad)
    encoder = RNNEncoder("GRU", False, 1, H, embeddings=source_embedding)
    decoder = StdRNNDecoder("GRU", False, 1, H, attn_type="none", embeddings=target_embedding)
    model = NMTModel(encoder, decoder).eval()
    generator = nn.Sequential(nn.Linear(H, words[1]), nn.LogSoftmax(-1))

    def score(batch: list[tuple[Ids, Ids]]) -> torch.Tensor:
        source = padded([[*s, END] for s, _ in batch], words[0])
        target = padded([[begin, *t, END] for _, t in batch], pad)
        lengths = torch.tensor([len(s) + 1 for s, _ in batch])
        out, _ = model(source.unsqueeze(2), target.unsqueeze(2), lengths)
        return generator(out).gather(2, target[:, 1:, None].clamp(max=words[1] - 1))

    return score


if __name__ == "__main__":
    compare("OpenNMT-py", score_of)
