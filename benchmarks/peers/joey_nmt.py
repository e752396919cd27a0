"""Phrase pairs a second with Joey NMT: ``python benchmarks/peers/joey_nmt.py PHRASE_TABLE [--pairs N]``.

A GRU encoder-decoder at sizes near the paper's, with random weights: its encoder has two directions of half the size,
its decoder attention and a full matrix before the words. Needs ``pip install joeynmt``.
"""

from __future__ import annotations

from types import SimpleNamespace

import torch
from side_by_side import Ids, Score, compare, padded
from torch.nn.functional import log_softmax

from moses_rnn.scorers.open import Model

try:
    from joeynmt.model import build_model
    from joeynmt.vocabulary import Vocabulary
except ImportError as missing:
    raise SystemExit(f"skipped: Joey NMT is not installed ({missing})") from missing

PAD, BEGIN, END, SHIFT = 1, 2, 3, 2  # <unk>, <pad>, <s>, </s>; our ids from 2 on are two higher there
SPECIAL = SimpleNamespace(
    unk_token="<unk>", pad_token="<pad>", bos_token="<s>", eos_token="</s>", sep_token=None,
    unk_id=0, pad_id=PAD, bos_id=BEGIN, eos_id=END, lang_tags=[],
)  # fmt: skip


def score_of(model: Model) -> Score:
    """Joey NMT's network at a model's sizes."""
    sizes = model.network.config
    sides = model.source_vocabulary, model.target_vocabulary
    known = [Vocabulary([word.decode() for word in side.words[2:]], SPECIAL) for side in sides]
    common = {"type": "recurrent", "rnn_type": "gru", "num_layers": 1}
    common["embeddings"] = {"embedding_dim": sizes.embedding_size}
    encoder = {**common, "bidirectional": True, "hidden_size": sizes.hidden_size // 2}
    decoder = {**common, "hidden_size": sizes.hidden_size, "attention": "bahdanau", "init_hidden": "bridge"}
    model = build_model({"encoder": encoder, "decoder": decoder}, *known).eval()

    def shifted(phrase: Ids) -> Ids:
        return [word + SHIFT if word > 1 else word for word in phrase] + [END]

    def score(batch: list[tuple[Ids, Ids]]) -> torch.Tensor:
        source = padded([shifted(s) for s, _ in batch], PAD)
        target = padded([[BEGIN, *shifted(t)] for _, t in batch], PAD)
        lengths = torch.tensor([len(s) + 1 for s, _ in batch])
        given = {"src": source, "src_mask": (source != PAD).unsqueeze(1), "src_length": lengths}
        shown = target[:, :-1]
        out, *_ = model._encode_decode(**given, trg_input=shown, trg_mask=(shown != PAD).unsqueeze(1))
        return log_softmax(out, -1).gather(2, target[:, 1:, None])

    return score


if __name__ == "__main__":
    compare("Joey NMT", score_of)
