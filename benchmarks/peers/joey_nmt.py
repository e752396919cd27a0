"""Phrase pairs a second with Joey NMT: ``python benchmarks/peers/joey_nmt.py PHRASE_TABLE [--pairs N]``.

A GRU encoder-decoder at sizes near the paper's, with random weights (its decoder has attention, and a full matrix
before the words); minibatches of 64, sorted over ten, padded, as a translation toolkit scores. Beside it, on the same
pairs and in the same run, the naive reference of `benchmarks/score.py`. Needs ``pip install joeynmt``.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import torch
from torch.nn.functional import log_softmax

sys.path.append(str(Path(__file__).parents[1]))
from score import Pair, naive, pairs_of, timed, untrained

from moses_rnn.formats.phrase_table import words
from moses_rnn.formats.streams import read_blocks
from moses_rnn.models.encdec import EncDecConfig
from moses_rnn.models.vocabulary import Vocabulary

try:
    from joeynmt.model import Model, build_model
    from joeynmt.vocabulary import Vocabulary as JoeyVocabulary
except ImportError as missing:
    raise SystemExit(f"skipped: Joey NMT is not installed ({missing})") from missing

SPECIAL = SimpleNamespace(
    unk_token="<unk>",
    pad_token="<pad>",
    bos_token="<s>",
    eos_token="</s>",
    sep_token=None,
    unk_id=0,
    pad_id=1,
    bos_id=2,
    eos_id=3,
    lang_tags=[],
)


def model_of(sizes: EncDecConfig, vocabularies: Sequence[Vocabulary]) -> Model:
    """A network of those sizes."""
    known = [JoeyVocabulary([word.decode() for word in words.words[2:]], SPECIAL) for words in vocabularies]
    side = {"type": "recurrent", "rnn_type": "gru", "num_layers": 1, "hidden_size": sizes.hidden_size}
    side["embeddings"] = {"embedding_dim": sizes.embedding_size}
    decoder = {**side, "attention": "bahdanau", "init_hidden": "bridge", "input_feeding": True}
    encoder = {**side, "bidirectional": True, "hidden_size": sizes.hidden_size // 2}  # the only one that it has
    return build_model({"encoder": encoder, "decoder": decoder}, *known).eval()


@torch.inference_mode()
def score(model: Model, pairs: Sequence[Pair]) -> None:
    """log p of every pair."""

    def ids(vocabulary: JoeyVocabulary, phrase: bytes) -> list[int]:
        return [vocabulary.lookup(word) for word in phrase.decode().split(" ")] + [SPECIAL.eos_id]

    of_ids = [(ids(model.src_vocab, source), ids(model.trg_vocab, target)) for source, target in pairs]
    for first in range(0, len(of_ids), 640):
        group = sorted(of_ids[first : first + 640], key=lambda pair: -len(pair[1]))
        for batch in (group[start : start + 64] for start in range(0, len(group), 64)):
            batch.sort(key=lambda pair: -len(pair[0]))
            source, target = padded([s for s, _ in batch]), padded([[SPECIAL.bos_id, *t] for _, t in batch])
            lengths = torch.tensor([len(s) for s, _ in batch])
            mask = (source != SPECIAL.pad_id).unsqueeze(1)
            given = {"src": source, "src_mask": mask, "src_length": lengths, "trg_input": target[:, :-1]}
            out, *_ = model._encode_decode(**given, trg_mask=(target[:, :-1] != SPECIAL.pad_id).unsqueeze(1))
            log_softmax(out, -1).gather(2, target[:, 1:, None])


def padded(phrases: Sequence[Sequence[int]]) -> torch.Tensor:
    """Phrases as rows."""
    ids = torch.full((len(phrases), max(map(len, phrases))), SPECIAL.pad_id)
    for row, phrase in zip(ids, phrases, strict=True):
        row[: len(phrase)] = torch.tensor(phrase)
    return ids


def main() -> None:
    """Print both rates."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("table")
    parser.add_argument("--pairs", type=int, default=2560)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    everything = (pair for pair in pairs_of(read_blocks(given.table), given.table) if all(map(words, pair)))
    pairs = list(itertools.islice(everything, given.pairs))
    checkpoint = untrained(pairs_of(read_blocks(given.table), given.table), "paper")
    model = model_of(checkpoint.model.config, [checkpoint.source_vocabulary, checkpoint.target_vocabulary])
    seconds = {"Joey NMT": float("inf"), "naive": float("inf")}
    for _ in range(given.rounds):
        seconds["naive"] = min(seconds["naive"], timed(lambda: naive(checkpoint, pairs)))
        seconds["Joey NMT"] = min(seconds["Joey NMT"], timed(lambda: score(model, pairs)))
    for name, taken in seconds.items():
        print(f"{name:<12}{len(pairs) / taken:>8,.0f} pairs/s{seconds['naive'] / taken:>8.2f} × naive")


if __name__ == "__main__":
    main()
