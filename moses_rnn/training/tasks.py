"""What a network learns: its examples in minibatches, and what they cost."""

from __future__ import annotations

import hashlib
import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from moses_rnn.errors import InputError
from moses_rnn.networks.batches import Batch, Lengths
from moses_rnn.networks.hardware import Kernel
from moses_rnn.networks.learning_curves import NATS, RANKED_WRONG, Measure
from moses_rnn.networks.n_grams import n_grams_of
from moses_rnn.networks.native_learning import NativeKernel, core_named
from moses_rnn.networks.network import Drop, TranslationNetwork, drop_units, keep
from moses_rnn.networks.ranker import Ranker, hinge
from moses_rnn.networks.slots import Slotted, in_slots
from moses_rnn.networks.softmax import Estimate, WordPartition, WordSample
from moses_rnn.networks.vocabulary import END_ID, UNKNOWN_ID, Ids
from moses_rnn.training.corpus import BLOCK, Corpus, Hashes, Positions, Text, TextCorpus, mix, take_spans
from moses_rnn.training.networks import TrainingConfig
from moses_rnn.training.ranks import Threads

ORDER, GROUPS = 0, 1  # random streams of an epoch: of its examples, of the minibatches in each group


class Cost(NamedTuple):
    """What a part of a minibatch costs."""

    objective: Tensor  # what is made smaller: summed over its examples
    nats: float  # -log p of all its tokens, or a ranker's loss
    tokens: int  # or what else the loss is a sum over


class Task:
    """What is learned, by a network with its initial weights on its device; `examples` is how many an epoch has."""

    unit = "pairs"  # what an example is, in the plural
    measure: Measure = NATS  # what the network is judged by

    def __init__(self, model: Any, config: TrainingConfig, identity: Mapping[str, Any], examples: int) -> None:
        self.model = model
        self.config = config
        self.examples = examples
        self.identity: Mapping[str, Any] = {**identity, **asdict(model.config)}
        self.device = next(model.parameters()).device
        product_dtype = torch.bfloat16 if config.precision == "bf16" else torch.float32
        if config.native:
            model.use_kernel(NativeKernel(product_dtype, core=core_named(config.native)))
        else:
            model.use_kernel(Kernel(product_dtype, compiled=config.compiled))

    @abstractmethod
    def batches(self, epoch: int, first: int) -> Iterator[Positions]:
        """The minibatches of an epoch from a given one on; seed and epoch determine them."""

    @abstractmethod
    def cost(self, rows: Positions, step: int, part: int = 0) -> Cost:
        """What a part of a minibatch costs, for learning; `step` is the number of steps before it."""

    @abstractmethod
    def held_out(self, threads: Threads) -> dict[str, float]:
        """Figures of the held-out examples; the measure's is what counts."""

    def describe(self) -> str:
        """The network in words, for a log."""
        return str(self.model.config.description)

    def drop(self, step: int, part: int) -> Drop:
        """Leaves the same units out of a part of a minibatch each time that it is made for it."""
        return drop_units(self.config.dropout, seed_of(self.config.seed, step, part), self.device)


def seed_of(seed: int, step: int, part: int) -> int:
    """A different seed for each part of each minibatch."""
    return int(np.random.SeedSequence((seed, step, part)).generate_state(1, np.uint64)[0] >> np.uint64(1))


def batches_by_length(
    rows: Positions, by_length: Callable[[Positions], Positions], config: TrainingConfig, epoch: int, first: int
) -> Iterator[Positions]:
    """The minibatches of an epoch from a given one on; seed and epoch determine them.

    Groups of `sort_batches` minibatches are drawn uniformly, sorted by length and cut; the minibatches of a group then
    come in random order, so that no length is always learned last.
    """
    order = np.random.default_rng((config.seed, epoch, ORDER)).permutation(rows)
    size = config.batch_size * max(config.sort_batches, 1)
    before = 0  # minibatches of earlier groups
    for number in range(math.ceil(len(order) / size)):
        group = order[number * size : (number + 1) * size]
        if before + config.sort_batches < first and len(group) == size:
            before += size // config.batch_size
            continue
        if config.sort_batches > 1:
            group = by_length(group)
        cut = [group[start : start + config.batch_size] for start in range(0, len(group), config.batch_size)]
        shuffled = np.random.default_rng((config.seed, epoch, GROUPS, number)).permutation(len(cut))
        for i in shuffled[max(first - before, 0) :]:
            yield cut[i]
        before += len(cut)


def blocks_of_words(rows: Positions, lengths: Lengths, most: int) -> Iterator[Positions]:
    """Rows, sorted longest first, in blocks that hold a bounded number of words and end symbols, or one row each."""
    first = 0
    while first < len(rows):
        size = max(most // (int(lengths[first]) + 1), 1)
        yield rows[first : first + size]
        first += size


# --- log p(target | source) of pairs: of phrases or of sentences ------------------------------------------------------
#
# With a large shortlist an epoch may be learned by partitions, each with few distinct target words (Jean, Cho,
# Memisevic and Bengio 2015; arXiv 1412.2007, section 3.2). A partition's words are <unk>, </s> and those of its
# minibatches, and are normalised over alone; it closes before the minibatch with which it would have too many. The
# released code fills partitions up with other words; these stay smaller.


SPECIAL = UNKNOWN_ID, END_ID
WordIds = npt.NDArray[np.int64]
SAMPLES = 2  # random stream of a step: of words
EVALUATION_WORDS = 4096  # target words at once when nothing is learned from them


class PhrasePairs(Task):
    """The task of a network of pairs (equation 4 of Cho et al. 2014): of phrases or of sentences."""

    def __init__(self, model: TranslationNetwork, corpus: Corpus, config: TrainingConfig) -> None:
        super().__init__(model, config, {"corpus": corpus.digest}, len(corpus.training))
        self.corpus = corpus
        self._unigram: npt.NDArray[np.float64] | None = None
        self._partition: WordPartition | None = None  # of the minibatch that was given out last

    def batches(self, epoch: int, first: int) -> Iterator[Positions]:
        """See `epoch_batches`; with partitions the order is the first epoch's, unless `reshuffle` is set."""
        config = self.config
        if not 0 < config.partition_words < len(self.corpus.target_vocabulary):
            yield from epoch_batches(self.corpus, config, epoch, first)
            return
        order = epoch_batches(self.corpus, config, epoch if config.reshuffle else 0)
        number = 0
        for words, batches in partitions_of(self.corpus, order, config.partition_words):
            self._partition = WordPartition(torch.from_numpy(words).to(self.device))
            for batch in batches:
                if number >= first:
                    yield batch
                number += 1

    def cost(self, rows: Positions, step: int, part: int = 0) -> Cost:
        """Minus the log-probabilities of the targets, estimated by sampled words or the partition of the last batch."""
        log_probs = self._log_probs(rows, self._partition or self._sample(step), self.drop(step, part))
        nats = -log_probs.sum()
        return Cost(nats, nats.item(), len(log_probs))

    def held_out(self, threads: Threads) -> dict[str, float]:
        """Mean cost of the held-out pairs: nats per target token (end symbols included), nats per pair."""
        rows = by_length(self.corpus, self.corpus.held_out)
        lengths = self.corpus.target.lengths(rows)
        costs = threads.each(self._exact_cost, blocks_of_words(rows, lengths, EVALUATION_WORDS))
        nats, tokens = sum(cost[0] for cost in costs), sum(cost[1] for cost in costs)
        return {"nats_per_token": nats / tokens, "nats_per_pair": nats / len(rows)}

    @torch.no_grad()
    def _exact_cost(self, rows: Positions) -> tuple[float, int]:
        log_probs = self._log_probs(rows)
        return -log_probs.double().sum().item(), len(log_probs)

    def _sample(self, step: int) -> WordSample | None:
        """The words to estimate a step's normalisation by; seed and step determine them."""
        count = self.config.sampled_words
        if not count:
            return None
        if self._unigram is None:
            self._unigram = self.corpus.unigram_model()
        random = np.random.default_rng((self.config.seed, step, SAMPLES))
        words = random.choice(len(self._unigram), count, p=self._unigram)
        expected = torch.from_numpy(np.log(count * self._unigram[words])).float()
        return WordSample(torch.from_numpy(words).to(self.device), expected.to(self.device))

    def _log_probs(self, rows: Positions, estimate: Estimate | None = None, drop: Drop = keep) -> Tensor:
        """Score every target word and end symbol of some pairs by its log p, in no particular order; nodes."""
        by_target = by_length(self.corpus, rows)
        by_source = np.argsort(-self.corpus.source.lengths(by_target), kind="stable")
        source_of = np.empty_like(by_source)
        source_of[by_source] = np.arange(len(by_source))
        sources = Batch.from_flat(*self.corpus.source.take(by_target[by_source]), self.device)
        targets = Batch.from_flat(*self.corpus.target.take(by_target), self.device)
        rows_of_sources = torch.from_numpy(source_of).to(self.device)
        network: TranslationNetwork = self.model
        return network.word_log_probs(sources, targets, rows_of_sources, estimate, drop)


def epoch_batches(corpus: Corpus, config: TrainingConfig, epoch: int, first: int = 0) -> Iterator[Positions]:
    """The training pairs of an epoch; see `batches_by_length`."""
    return batches_by_length(corpus.training, lambda rows: by_length(corpus, rows), config, epoch, first)


def by_length(corpus: Corpus, rows: Positions) -> Positions:
    """Pairs sorted by target length, then source length, longest first."""
    return rows[np.lexsort((-corpus.source.lengths(rows), -corpus.target.lengths(rows)))]


class Partition(NamedTuple):
    """Minibatches that follow each other, and their distinct target words with <unk> and </s>; ascending."""

    words: WordIds
    batches: list[Positions]


def partitions_of(corpus: Corpus, batches: Iterable[Positions], most: int) -> Iterator[Partition]:
    """The partitions of an epoch, of `most` words (the paper's τ).

    A minibatch that has more itself comes as halves, or quarters: the first epoch has none, see `describe_partitions`,
    but a later one may in its new order.
    """
    seen = np.zeros(len(corpus.target_vocabulary), np.bool_)
    seen[list(SPECIAL)] = True
    held: list[Positions] = []
    for batch in _narrow_enough(corpus, batches, most):
        own = target_words(corpus, batch)
        if np.count_nonzero(seen) + np.count_nonzero(~seen[own]) > most:
            yield Partition(np.flatnonzero(seen), held)
            seen[:], held = False, []
            seen[list(SPECIAL)] = True
        seen[own] = True
        held.append(batch)
    if held:
        yield Partition(np.flatnonzero(seen), held)


def _narrow_enough(corpus: Corpus, batches: Iterable[Positions], most: int) -> Iterator[Positions]:
    for batch in batches:
        if len(batch) > 1 and len(target_words(corpus, batch)) > most - len(SPECIAL):
            yield from _narrow_enough(corpus, np.array_split(batch, 2), most)
        else:
            yield batch


def target_words(corpus: Corpus, batch: Positions) -> WordIds:
    """The distinct target words of a minibatch, <unk> and </s> apart; ascending."""
    words = np.unique(corpus.target.take(batch)[0]).astype(np.int64)
    return words[~np.isin(words, SPECIAL)]


def describe_partitions(corpus: Corpus, config: TrainingConfig) -> list[str]:
    """What partitions the first epoch falls into, if it does, in lines for a log."""
    most = config.partition_words
    if not 0 < most < len(corpus.target_vocabulary):
        return []
    batches = list(epoch_batches(corpus, config, 0))
    widest = max(len(target_words(corpus, batch)) for batch in batches)
    if widest > most - len(SPECIAL):
        raise InputError(
            f"partition_words {most}: expected at least {widest + len(SPECIAL):,}, the distinct target words of the "
            f"widest minibatch with <unk> and </s>, found {most:,}",
            advice="A smaller --batch-size makes narrower minibatches.",
        )
    sizes = [len(partition.words) for partition in partitions_of(corpus, batches, most)]
    return [
        f"partitions of the first epoch: {len(sizes):,}, of {max(sizes):,} target words at most; the widest "
        f"minibatch has {widest:,}"
    ]


# --- ranking the right target of a source above the same target with one word replaced --------------------------------


LEARNING, HELD_OUT = 0, 1  # random streams of corruptions
CORRUPTIONS = 10  # of each held-out pair
EVALUATION_PAIRS = 2048
FIRST_WORD = END_ID + 1  # of the shortlist


class RankedPairs(Task):
    """The task of a ranker: each pair with another corruption in each step, the held-out ones with ten that stay."""

    measure = RANKED_WRONG

    def __init__(self, model: Ranker, corpus: Corpus, config: TrainingConfig) -> None:
        words = len(corpus.target_vocabulary) - FIRST_WORD
        if words < 2:
            raise InputError(f"expected at least two target words, so that one can replace the other, found {words}")
        super().__init__(model, config, {"corpus": corpus.digest}, len(corpus.training))
        self.corpus = corpus

    def batches(self, epoch: int, first: int) -> Iterator[Positions]:
        """See `epoch_batches`."""
        return epoch_batches(self.corpus, self.config, epoch, first)

    def cost(self, rows: Positions, step: int, part: int = 0) -> Cost:
        """The hinge loss; a pair's corruption follows from it, the step and the seed, whoever computes it."""
        sources, targets, lengths = self._slotted(rows)
        wrong = self._corrupted(targets, lengths, hashes_of(rows, self.config.seed, step, LEARNING))
        right, wrong_scores = (self._scores(sources, each, self.drop(step, part)) for each in (targets, wrong))
        loss = hinge(right, wrong_scores).sum()
        return Cost(loss, loss.item(), len(rows))

    def held_out(self, threads: Threads) -> dict[str, float]:
        """Of the corruptions of held-out pairs the share that scores at least as much as the pair, and the loss."""
        rows = self.corpus.held_out
        blocks = (rows[first : first + EVALUATION_PAIRS] for first in range(0, len(rows), EVALUATION_PAIRS))
        costs = threads.each(self._exact_cost, blocks)
        wrong, loss = (sum(column) / (CORRUPTIONS * len(rows)) for column in zip(*costs, strict=True))
        return {RANKED_WRONG.key: wrong, "ranked_right": 1 - wrong, RANKED_WRONG.beside: loss}

    @torch.no_grad()
    def _exact_cost(self, rows: Positions) -> tuple[float, float]:
        """How many corruptions do not score less, or NaN if that cannot be told; and their summed loss."""
        sources, targets, lengths = self._slotted(rows)
        right = self._scores(sources, targets)
        errors, loss = 0.0, 0.0
        for number in range(CORRUPTIONS):
            hashes = hashes_of(rows, self.config.seed, number, HELD_OUT)
            wrong = self._scores(sources, self._corrupted(targets, lengths, hashes))
            loss += hinge(right, wrong).double().sum().item()
            errors += (right <= wrong).sum().item()
        return (errors if np.isfinite(loss) else float("nan")), loss

    def _slotted(self, rows: Positions) -> tuple[Slotted, Slotted, Lengths]:
        """Sources and targets in their slots, and the words of each target."""
        slots, (source, target) = self.model.config.slots, (self.corpus.source, self.corpus.target)
        flat, lengths = target.take(rows)
        sources = in_slots(*source.take(rows), slots, len(self.corpus.source_vocabulary))
        return sources, in_slots(flat, lengths, slots, len(self.corpus.target_vocabulary)), lengths

    def _corrupted(self, targets: Slotted, lengths: Lengths, hashes: Hashes) -> Slotted:
        last_only = self.model.config.corrupt == "last"
        return corrupted(targets, lengths, hashes, len(self.corpus.target_vocabulary), last_only=last_only)

    def _scores(self, sources: Slotted, targets: Slotted, drop: Drop = keep) -> Tensor:
        x, y = (torch.from_numpy(side).to(self.device) for side in (sources, targets))
        network: Ranker = self.model
        return network.scores(x, y, drop)


def hashes_of(rows: Positions, *seeds: int) -> Hashes:
    """Random numbers of 64 bits, one for each pair of a corpus."""
    key = np.random.SeedSequence(seeds).generate_state(1, np.uint64)
    return mix(mix(rows.astype(np.uint64)) + key)


def corrupted(targets: Slotted, lengths: Lengths, hashes: Hashes, words: int, *, last_only: bool) -> Slotted:
    """Targets in slots (pairs × S) with one word, or the last, replaced by another of the shortlist, each as likely.

    `hashes` decide, a random number of 64 bits for each pair.
    """
    every = np.arange(len(targets))
    places = lengths - 1 if last_only else _below(lengths, hashes)
    replaced = targets[every, places]
    in_shortlist = replaced >= FIRST_WORD
    other = FIRST_WORD + _below(words - FIRST_WORD - in_shortlist, mix(hashes))
    result = targets.copy()
    result[every, places] = other + (in_shortlist & (other >= replaced))
    return result


def _below(bounds: npt.NDArray[np.int64], hashes: Hashes) -> npt.NDArray[np.int64]:
    """Numbers from 0 to below the bounds."""
    return (hashes % bounds.astype(np.uint64)).astype(np.int64)


# --- language models: n-grams in random order, or sentences in batches of similar length ------------------------------


WITHIN = 1  # random stream of an epoch: of the n-grams in each block
EVALUATION_ROWS = 2048  # n-grams at once when nothing is learned from them


def _identity(corpus: TextCorpus, **learning: float) -> dict[str, Any]:
    digests = [hashlib.sha256(text.flat.data).hexdigest() for text in (corpus.text, corpus.held_out)]
    return {"text": digests[0], "held-out text": digests[1], **learning}


class NGrams(Task):
    """The task of a CSLM, or of Bengio's network, with a penalty `self_normalise` (log Z)² on what is learned."""

    unit = "n-grams"

    def __init__(
        self, model: nn.Module, corpus: TextCorpus, config: TrainingConfig, self_normalise: float = 0.0
    ) -> None:
        identity = _identity(corpus, self_normalise=self_normalise)
        super().__init__(model, config, identity, corpus.text.tokens())
        self._text, self._held_out, self._self_normalise = corpus.text, corpus.held_out, self_normalise

    def batches(self, epoch: int, first: int) -> Iterator[Positions]:
        """Every n-gram comes once. Blocks of the text come in random order, and the n-grams of a block too."""
        size, seed = self.config.batch_size, self.config.seed
        blocks = range(0, len(self._text.flat), BLOCK)
        before = 0
        for number in np.random.default_rng((seed, epoch, ORDER)).permutation(len(blocks)):
            positions = self._text.predicted(blocks[number], blocks[number] + BLOCK)
            shuffled = np.random.default_rng((seed, epoch, WITHIN, number)).permutation(positions)
            cut = range(0, len(shuffled), size)
            for start in cut[max(first - before, 0) :]:
                yield shuffled[start : start + size]
            before += len(cut)

    def cost(self, rows: Positions, step: int, part: int = 0) -> Cost:
        """Minus the log-probabilities, and the penalty on log Z."""
        log_p, log_Z = self._log_probs(self._text, rows, self.drop(step, part))
        nats = -log_p.sum()
        penalty = self._self_normalise * (log_Z**2).sum()
        return Cost(nats + penalty, nats.item(), len(rows))

    def held_out(self, threads: Threads) -> dict[str, float]:
        """Mean cost of a held-out token, words outside the shortlist counted as one; mean |log Z|."""
        costs = threads.each(self._exact_cost, range(0, len(self._held_out.flat), EVALUATION_ROWS))
        nats, size, tokens = (sum(column) for column in zip(*costs, strict=True))
        return {"nats_per_token": nats / tokens, "mean_abs_log_z": size / tokens}

    @torch.no_grad()
    def _exact_cost(self, start: int) -> tuple[float, float, int]:
        rows = self._held_out.predicted(start, start + EVALUATION_ROWS)
        if not len(rows):
            return 0.0, 0.0, 0
        log_p, log_Z = self._log_probs(self._held_out, rows)
        return -log_p.double().sum().item(), log_Z.double().abs().sum().item(), len(rows)

    def _log_probs(self, text: Text, rows: Positions, drop: Drop = keep) -> tuple[Tensor, Tensor]:
        n_grams = torch.from_numpy(n_grams_of(text.flat, rows, self.model.config.order)).to(self.device)
        log_p, log_Z = self.model.log_probs(n_grams[:, :-1], n_grams[:, -1], drop)
        return log_p, log_Z


class Sentences(Task):
    """The task of an RNNLM, of a text that has one ``<s>`` before each sentence.

    The error of a word is followed `bptt` steps back; 0: to its sentence's beginning.
    """

    unit = "sentences"

    def __init__(self, model: nn.Module, corpus: TextCorpus, config: TrainingConfig, bptt: int = 0) -> None:
        self._text, self._held_out, self._bptt = _Lines(corpus.text), _Lines(corpus.held_out), bptt
        super().__init__(model, config, _identity(corpus, bptt=bptt), len(self._text.lengths))

    def batches(self, epoch: int, first: int) -> Iterator[Positions]:
        """See `batches_by_length`."""
        return batches_by_length(np.arange(self.examples), self._text.by_length, self.config, epoch, first)

    def cost(self, rows: Positions, step: int, part: int = 0) -> Cost:
        """Minus the log-probabilities of all words and ends."""
        nats, tokens = self._nats(self._text, rows, self.drop(step, part))
        return Cost(nats, nats.item(), tokens)

    def held_out(self, threads: Threads) -> dict[str, float]:
        """Mean cost of a held-out token, words outside the shortlist counted as one."""
        costs = threads.each(self._exact_cost, list(self._held_out.blocks()))
        nats, tokens = (sum(column) for column in zip(*costs, strict=True))
        return {"nats_per_token": nats / tokens}

    def describe(self) -> str:
        """The network, and how far errors are followed."""
        steps = f"{self._bptt} steps back" if self._bptt else "to the sentence's beginning"
        return f"{super().describe()}, errors propagated {steps}"

    @torch.no_grad()
    def _exact_cost(self, rows: Positions) -> tuple[float, int]:
        nats, tokens = self._nats(self._held_out, rows)
        return nats.item(), tokens

    def _nats(self, lines: _Lines, rows: Positions, drop: Drop = keep) -> tuple[Tensor, int]:
        sentences = Batch.from_flat(*lines.take(lines.by_length(rows)), self.device)
        log_p = self.model.word_log_probs(sentences, drop, self._bptt)
        return -log_p.sum(), len(log_p)


class _Lines:
    """Sentences of a text by their number."""

    def __init__(self, text: Text) -> None:
        self._flat = text.flat
        self._begins = np.flatnonzero(text.flat == text.begin_id) + 1
        self.lengths: Lengths = np.diff(self._begins, append=len(text.flat) + 1) - 2  # without <s> and </s>

    def by_length(self, rows: Positions) -> Positions:
        """Sentences sorted by length, longest first; of equally long ones the first stays the first."""
        return rows[np.argsort(-self.lengths[rows], kind="stable")]

    def take(self, rows: Positions) -> tuple[Ids, Lengths]:
        """Their ids end to end, without end symbols, and the words of each."""
        lengths = self.lengths[rows]
        return take_spans(self._flat, self._begins[rows], lengths), lengths

    def blocks(self) -> Iterator[Positions]:
        """All sentences, longest first, in blocks that hold a bounded number of words."""
        order = self.by_length(np.arange(len(self.lengths)))
        return blocks_of_words(order, self.lengths[order], EVALUATION_WORDS)
