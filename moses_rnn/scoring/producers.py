"""Score producers: whatever gives a phrase pair one or more scores. All of them speak natural logarithms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import OutOfMemoryError, Tensor
from torch.nn.functional import softplus

from moses_rnn.errors import MosesRnnError
from moses_rnn.formats.phrase_table import words
from moses_rnn.models.batches import Batch
from moses_rnn.models.checkpoint import Checkpoint
from moses_rnn.models.encdec import Context
from moses_rnn.models.vocabulary import UNKNOWN_ID, Vocabulary

Pair = tuple[bytes, bytes]  # source phrase, target phrase
Scores = npt.NDArray[np.float64]  # pairs × num_scores
Ids = tuple[int, ...]

ROWS = 1024  # phrases stepped together
PADDED_WORDS = 1 << 16  # rows × longest phrase of a block
NODES = 512  # words normalised together: their logits stay near the processor


class ScoreProducer(Protocol):
    """A source of feature values, as Moses calls its own."""

    name: str
    num_scores: int
    meaning: str  # what the score is, for the signature
    halvings: int  # how often work was split because the device's memory ran out

    def log_probs(self, pairs: Sequence[Pair]) -> Scores:
        """Natural logarithms; pairs × num_scores. A pair's scores depend on that pair alone."""


class EncDecProducer:
    """The log-probability of an RNN Encoder-Decoder: log p(target | source), or of the inverse direction.

    Conditioned on the whole other phrase; end symbols of both sides are included; words outside the shortlists count as
    ``<unk>``. In a chunk each distinct source is encoded once and each distinct pair of ids decoded once.
    """

    num_scores = 1

    def __init__(self, checkpoint: Checkpoint, device: str = "cpu") -> None:
        self._inverse = checkpoint.direction == "target-to-source"
        self.name = "RNNInverse" if self._inverse else "RNN"
        side, given = ("source", "target") if self._inverse else ("target", "source")
        self.meaning = f"log p({side} | {given}) of the RNN Encoder-Decoder, natural, both </s> included"
        self._model = checkpoint.model.to(device)
        self._read = checkpoint.source_vocabulary
        self._written = checkpoint.target_vocabulary
        self._device = device
        self.halvings = 0

    @torch.inference_mode()
    def log_probs(self, pairs: Sequence[Pair]) -> Scores:
        """Natural logarithms; pairs × 1."""
        if not pairs:
            return np.zeros((0, 1))
        if self._inverse:
            pairs = [(target, source) for source, target in pairs]
        sources = _Numbering(self._read)
        source_of = [sources.number(source) for source, _ in pairs]
        targets = _Numbering(self._written)
        target_of = [targets.number(target) for _, target in pairs]
        questions = dict.fromkeys(zip(source_of, target_of, strict=True))  # distinct, in order
        context = self._encode(sources.phrases)
        answers = self._decode(context, [(s, targets.phrases[t]) for s, t in questions])
        answer_of = dict(zip(questions, answers, strict=True))
        return np.array([[answer_of[key]] for key in zip(source_of, target_of, strict=True)], dtype=np.float64)

    def _encode(self, phrases: list[Ids]) -> Context:
        """Contexts of source phrases, in their order."""
        order = sorted(range(len(phrases)), key=lambda i: -len(phrases[i]))
        blocks: list[Context] = []

        def encode(block: list[int]) -> None:
            blocks.append(self._model.decoder.context(self._model.encoder(self._batch([phrases[i] for i in block]))))

        for block in _blocks(order, [len(phrases[i]) for i in order]):
            self._within_memory(encode, block)
        place = torch.empty(len(order), dtype=torch.long)
        place[torch.tensor(order)] = torch.arange(len(order))
        return Context(*map(torch.cat, zip(*blocks, strict=True))).take(place.to(self._device))

    def _decode(self, context: Context, questions: list[tuple[int, Ids]]) -> list[float]:
        """log p of target phrases, each given one of the contexts, in their order."""
        order = sorted(range(len(questions)), key=lambda i: -len(questions[i][1]))
        answers = [0.0] * len(order)

        def decode(block: list[int]) -> None:
            targets = self._batch([questions[i][1] for i in block])
            source_of = torch.tensor([questions[i][0] for i in block], device=self._device)
            words_of_block = self._word_log_probs(context.take(source_of), targets)
            sums = torch.zeros(len(block), dtype=torch.float64, device=self._device)
            for step in torch.split(words_of_block.double(), targets.active):  # in order, so that bits repeat
                sums[: len(step)] += step
            for i, value in zip(block, sums.tolist(), strict=True):
                answers[i] = value

        for block in _blocks(order, [len(questions[i][1]) for i in order]):
            self._within_memory(decode, block)
        return answers

    def _within_memory(self, work: Callable[[list[int]], None], block: list[int]) -> None:
        """Work on a block, or on its halves one after the other if the device's memory is too small for it."""
        try:
            return work(block)
        except (OutOfMemoryError, MemoryError, RuntimeError) as error:
            if not _is_out_of_memory(error):
                raise
            if len(block) == 1:
                too_small = f"the memory of {self._device} is too small for a single phrase"
                raise MosesRnnError(f"{too_small}: {error}") from error
        self.halvings += 1
        if self._device.startswith("cuda"):
            torch.cuda.empty_cache()
        self._within_memory(work, block[: len(block) // 2])
        return self._within_memory(work, block[len(block) // 2 :])

    def _word_log_probs(self, context: Context, targets: Batch) -> Tensor:
        """log p(y_t | y_<t, e) for each of ``targets.packed()``; nodes."""
        h, e, O_cc = self._model.decoder.nodes(context, targets)
        ids = targets.packed()
        parts = []
        for first in range(0, len(ids), NODES):
            block = slice(first, first + NODES)
            logits = self._model.decoder.read_out(h[block], e[block], O_cc[block])  # nodes × K
            chosen = logits.gather(1, ids[block, None])
            others = logits.scatter_(1, ids[block, None], -torch.inf).logsumexp(dim=1)
            # log p = -log(1 + Σ_others exp(logit - chosen)): near p = 1, chosen - logsumexp would cancel
            parts.append(-softplus(others - chosen.squeeze(1)))
        return torch.cat(parts)

    def _batch(self, phrases: list[Ids]) -> Batch:
        return Batch.from_lists(phrases, self._device)


class WordPenaltyProducer:
    """The paper's word penalty: minus the number of target words outside the shortlist."""

    name = "WordPenalty"
    num_scores = 1
    meaning = "-n for n target words outside the shortlist"
    halvings = 0

    def __init__(self, target_vocabulary: Vocabulary) -> None:
        self._vocabulary = target_vocabulary

    def log_probs(self, pairs: Sequence[Pair]) -> Scores:
        """Natural logarithms; pairs × 1."""
        unknown = [self._vocabulary.ids(words(target)).count(UNKNOWN_ID) for _, target in pairs]
        return -np.array(unknown, dtype=np.float64)[:, None]


class _Numbering:
    """Numbers the distinct phrases of a chunk, as ids, in the order in which they come."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._by_spelling: dict[bytes, int] = {}
        self._by_ids: dict[Ids, int] = {}

    def number(self, phrase: bytes) -> int:
        known = self._by_spelling.get(phrase)
        if known is None:
            ids = tuple(self._vocabulary.ids(words(phrase)))
            known = self._by_ids.setdefault(ids, len(self._by_ids))
            self._by_spelling[phrase] = known
        return known

    @property
    def phrases(self) -> list[Ids]:
        return list(self._by_ids)


def _is_out_of_memory(error: Exception) -> bool:
    """Whether memory ran out; on a CPU torch says so in a bare RuntimeError."""
    return not isinstance(error, RuntimeError) or isinstance(error, OutOfMemoryError) or "allocate memory" in str(error)


def _blocks(items: list[int], lengths: list[int]) -> Iterator[list[int]]:
    """Items, longest first, in blocks of a bounded number of rows and of padded words."""
    first = 0
    while first < len(items):
        size = max(min(ROWS, PADDED_WORDS // (lengths[first] + 1)), 1)
        yield items[first : first + size]
        first += size
