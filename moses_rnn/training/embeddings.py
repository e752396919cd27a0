"""Embeddings that do not begin at random but as a file has them, and perhaps stay so."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from moses_rnn.files.streams import find_input, read_blocks, read_lines
from moses_rnn.networks.network import NetworkOfPairs
from moses_rnn.networks.vocabulary import END_ID, Vocabulary
from moses_rnn.training.embeddings_text import read_embeddings
from moses_rnn.training.networks import Options


@dataclass(frozen=True)
class GivenEmbeddings:
    """Files of embeddings by the network's side: "source" is what it reads; and whether they are not learned."""

    files: Mapping[str, str]
    frozen: bool = False

    @classmethod
    def of(cls, options: Options) -> GivenEmbeddings:
        """The files that a training's options name for the sides of its table.

        Raises:
            InputError: one is not there.
        """
        named = {side: options.get(f"{side}_embeddings") for side in ("source", "target")}
        if options.get("inverse"):
            named = {"source": named["target"], "target": named["source"]}
        files = {side: find_input(path) for side, path in named.items() if path}
        return cls(files, bool(options.get("freeze_embeddings")))

    def choices(self) -> dict[str, Any]:
        """What they decide of a training, as `TrainingConfig` has it."""
        digests: dict[str, Any] = {f"{side}_embeddings": _sha256(path) for side, path in self.files.items()}
        return {**digests, "freeze_embeddings": self.frozen}

    def begin(self, model: NetworkOfPairs, vocabularies: Mapping[str, Vocabulary]) -> list[str]:
        """Give the words of the shortlists their rows; ``<unk>``, ``</s>`` and words without one keep their own.

        Args:
            model: with its initial weights.
            vocabularies: by side.

        Returns:
            How many words have a row, in lines for a log.

        Raises:
            FormatError: a file is not of embeddings, or of others than the network's in width.
        """
        lines = []
        for side, path in self.files.items():
            embedding, vocabulary = model.embeddings[side], vocabularies[side]
            rows = _take(embedding, vocabulary, path)
            if self.frozen:
                freeze(embedding, rows)
            every = len(vocabulary) - END_ID - 1
            kept = ", not learned" if self.frozen else ""
            lines.append(
                f"{side} embeddings: {len(rows):,} of {every:,} words as in {path}{kept}; {every - len(rows):,} random"
            )
        return lines


@torch.no_grad()
def _take(embedding: Tensor, vocabulary: Vocabulary, path: str) -> Tensor:
    """Copy the rows that a file has for words of the shortlist; returns the words' ids."""
    ids = {word: i for i, word in enumerate(vocabulary.words) if i > END_ID}
    taken = []
    for word, row in read_embeddings(read_lines(path), path, embedding.shape[1], ids.keys()):
        embedding[ids[word]] = torch.tensor(row, dtype=embedding.dtype)
        taken.append(ids[word])
    return torch.tensor(taken, dtype=torch.int64, device=embedding.device)


def freeze(embedding: nn.Parameter, rows: Tensor) -> None:
    """Have the gradient of some rows be zero from now on."""

    def without(gradient: Tensor) -> Tensor:
        return gradient.index_fill(0, rows, 0.0)

    embedding.register_hook(without)  # type: ignore[no-untyped-call]


def _sha256(path: str) -> str:
    digest = hashlib.sha256()
    for block in read_blocks(path):
        digest.update(block)
    return digest.hexdigest()
