"""Training tasks: examples in minibatches, and their costs."""

from __future__ import annotations

import hashlib
import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from moses_rnn.errors import InputError, number_of
from moses_rnn.networks.batches import Batch, Ints, Lengths, in_slots, take_spans
from moses_rnn.networks.compute import Kernel
from moses_rnn.networks.measures import NATS, RANKED_WRONG, Measure
from moses_rnn.networks.n_grams import n_grams_of
from moses_rnn.networks.native_learning import NativeKernel, core_named
from moses_rnn.networks.network import Drop, TranslationNetwork, drop_units, keep
from moses_rnn.networks.ranker import Ranker, hinge
from moses_rnn.networks.vocabulary import END_ID, UNKNOWN_ID, Ids
from moses_rnn.training.corpus import BLOCK, Corpus, Hashes, Positions, mix
from moses_rnn.training.presets import TrainingConfig
from moses_rnn.training.ranks import Threads
from moses_rnn.training.text_corpus import Text, TextCorpus

ORDER, GROUPS = 0, 1  # random streams of an epoch: of its examples, of the minibatches in each group


class Cost(NamedTuple):
    """The cost of a part of a minibatch."""

    objective: Tensor  # minimised; summed over the examples
    nats: float  # -log p of all its tokens, or a ranker's loss
    tokens: int  # number of tokens, or of other terms of the loss


class Task:
    """A training task for a network with initial weights on its device; an epoch has `examples` examples."""

    unit = "pairs"  # name of examples, plural
    measure: Measure = NATS  # of held-out cost

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
            model.use_kernel(Kernel(product_dtype))

    @abstractmethod
    def batches(self, epoch: int, first: int) -> Iterator[Positions]:
        """The minibatches of an epoch from a given one on; seed and epoch determine them."""

    @abstractmethod
    def cost(self, rows: Positions, step: int, part: int = 0) -> Cost:
        """Compute the training cost of a part of a minibatch; `step` is the number of earlier steps."""

    @abstractmethod
    def held_out(self, threads: Threads) -> dict[str, float]:
        """Evaluate the held-out examples; the measure's figure decides."""

    def describe(self) -> str:
        """Describe the network for a log."""
        return str(self.model.config.description)

    def drop(self, step: int, part: int) -> Drop:
        """Return the dropout of a part of a minibatch, which always drops the same units."""
        return drop_units(self.config.dropout, seed_of(self.config.seed, step, part), self.device)


def seed_of(seed: int, step: int, part: int) -> int:
    """Return a different seed for each part of each minibatch."""
    return int(np.random.SeedSequence((seed, step, part)).generate_state(1, np.uint64)[0] >> np.uint64(1))


def batches_by_length(
    rows: Positions,
    lengths: Callable[[Positions], Lengths],
    by_length: Callable[[Positions], Positions],
    config: TrainingConfig,
    epoch: int,
    first: int,
) -> Iterator[Positions]:
    """Yield the minibatches of an epoch from a given one on; seed and epoch determine them.

    Groups of about `sort_batches` minibatches are drawn uniformly, sorted by length and cut; the minibatches of a group
    then come in random order, so that no length is always learned last. `lengths` counts the words of `batch_words`.
    """
    order = np.random.default_rng((config.seed, epoch, ORDER)).permutation(rows)
    size = config.batch_size
    if config.batch_words:
        size = max(round(config.batch_words / (1 + lengths(order).mean())), 1)
    size *= max(config.sort_batches, 1)
    before = 0  # minibatches of earlier groups
    for number in range(math.ceil(len(order) / size)):
        group = order[number * size : (number + 1) * size]
        if config.sort_batches > 1:
            group = by_length(group)
        if config.batch_words:
            cut = cut_evenly(group, 1 + lengths(group), config.batch_words)
        else:
            cut = [group[start : start + config.batch_size] for start in range(0, len(group), config.batch_size)]
        shuffled = np.random.default_rng((config.seed, epoch, GROUPS, number)).permutation(len(cut))
        for i in shuffled[max(first - before, 0) :]:
            yield cut[i]
        before += len(cut)


def cut_evenly(rows: Positions, words: Lengths, size: int) -> list[Positions]:
    """Cut rows into parts of equally many words, about `size` each; each ends with the row that completes it."""
    ends = np.cumsum(words)
    parts = max(round(ends[-1] / size), 1)
    return np.split(rows, np.flatnonzero(np.diff((ends - 1) * parts // ends[-1])) + 1)


def blocks_of_words(rows: Positions, lengths: Lengths, most: int) -> Iterator[Positions]:
    """Split rows, sorted longest first, into blocks of at most `most` words and end symbols, or of one row."""
    first = 0
    while first < len(rows):
        size = max(most // (int(lengths[first]) + 1), 1)
        yield rows[first : first + size]
        first += size


# --- log p(target | source) of pairs: of phrases or of sentences ------------------------------------------------------
#
# With a large shortlist, an epoch may be split into partitions with few distinct target words each (Jean, Cho,
# Memisevic and Bengio 2015; arXiv 1412.2007, section 3.2). A partition's words are <unk>, </s> and those of its
# minibatches, and normalisation is over these only; it closes before the minibatch that would add too many words. The
# released code fills partitions up with other words; these stay smaller.


SPECIAL = UNKNOWN_ID, END_ID
EVALUATION_WORDS = 4096  # target words at once in evaluations


class PhrasePairs(Task):
    """The task of a network of phrase or sentence pairs (equation 4 of Cho et al. 2014)."""

    def __init__(self, model: TranslationNetwork, corpus: Corpus, config: TrainingConfig) -> None:
        super().__init__(model, config, {"corpus": corpus.digest}, len(corpus.training))
        self.corpus = corpus
        self._partition: Tensor | None = None  # of the last minibatch yielded

    def batches(self, epoch: int, first: int) -> Iterator[Positions]:
        """See `epoch_batches`; with partitions, the order is the first epoch's unless `reshuffle` is set."""
        config = self.config
        if not 0 < config.partition_words < len(self.corpus.target_vocabulary):
            yield from epoch_batches(self.corpus, config, epoch, first)
            return
        order = epoch_batches(self.corpus, config, epoch if config.reshuffle else 0)
        number = 0
        for words, batches in partitions_of(self.corpus, order, config.partition_words):
            self._partition = torch.from_numpy(words).to(self.device)
            for batch in batches:
                if number >= first:
                    yield batch
                number += 1

    def cost(self, rows: Positions, step: int, part: int = 0) -> Cost:
        """Return minus log p of the targets, estimated by the last batch's partition if there is one.

        What smoothed labels cost more is part of the objective, but not of the nats.
        """
        pairs, drop, more = self._pairs(rows), self.drop(step, part), 0.0
        if smoothing := self.config.label_smoothing:
            log_probs, above = self.model.smoothed_log_probs(*pairs, self._partition, drop)
            more = smoothing * above.sum()
        else:
            log_probs = self.model.word_log_probs(*pairs, self._partition, drop)
        nats = -log_probs.sum()
        return Cost(nats + more, nats.item(), len(log_probs))

    def held_out(self, threads: Threads) -> dict[str, float]:
        """Return the mean cost of held-out pairs in nats per target token (end symbols included) and per pair."""
        rows = by_length(self.corpus, self.corpus.held_out)
        lengths = self.corpus.target.lengths(rows)
        costs = threads.each(self._exact_cost, blocks_of_words(rows, lengths, EVALUATION_WORDS))
        nats, tokens = sum(cost[0] for cost in costs), sum(cost[1] for cost in costs)
        return {"nats_per_token": nats / tokens, "nats_per_pair": nats / len(rows)}

    @torch.no_grad()
    def _exact_cost(self, rows: Positions) -> tuple[float, int]:
        log_probs = self.model.word_log_probs(*self._pairs(rows))
        return -log_probs.double().sum().item(), len(log_probs)

    def _pairs(self, rows: Positions) -> tuple[Batch, Batch, Tensor]:
        """Return sources, targets and the row of each target's source, in no particular order."""
        by_target = by_length(self.corpus, rows)
        by_source = np.argsort(-self.corpus.source.lengths(by_target), kind="stable")
        source_of = np.empty_like(by_source)
        source_of[by_source] = np.arange(len(by_source))
        sources = Batch.from_flat(*self.corpus.source.take(by_target[by_source]), self.device)
        targets = Batch.from_flat(*self.corpus.target.take(by_target), self.device)
        return sources, targets, torch.from_numpy(source_of).to(self.device)


def epoch_batches(corpus: Corpus, config: TrainingConfig, epoch: int, first: int = 0) -> Iterator[Positions]:
    """Yield the minibatches of an epoch of training pairs; see `batches_by_length`."""
    rows, lengths = corpus.training, corpus.target.lengths
    return batches_by_length(rows, lengths, lambda rows: by_length(corpus, rows), config, epoch, first)


def by_length(corpus: Corpus, rows: Positions) -> Positions:
    """Sort pairs by target length, then source length, longest first."""
    return rows[np.lexsort((-corpus.source.lengths(rows), -corpus.target.lengths(rows)))]


def partitions_of(corpus: Corpus, batches: Iterable[Positions], most: int) -> Iterator[tuple[Ints, list[Positions]]]:
    """Yield the partitions of an epoch, with at most `most` words each (the paper's τ).

    A partition is the distinct target words of consecutive minibatches with <unk> and </s>, ascending, and these
    minibatches. One with more words is split into halves or quarters: `describe_partitions` rules this out for the
    first epoch, but a later one may have such minibatches in its new order.
    """
    seen = np.zeros(len(corpus.target_vocabulary), np.bool_)
    seen[list(SPECIAL)] = True
    held: list[Positions] = []
    for batch in _narrow_enough(corpus, batches, most):
        own = target_words(corpus, batch)
        if np.count_nonzero(seen) + np.count_nonzero(~seen[own]) > most:
            yield np.flatnonzero(seen), held
            seen[:], held = False, []
            seen[list(SPECIAL)] = True
        seen[own] = True
        held.append(batch)
    if held:
        yield np.flatnonzero(seen), held


def _narrow_enough(corpus: Corpus, batches: Iterable[Positions], most: int) -> Iterator[Positions]:
    for batch in batches:
        if len(batch) > 1 and len(target_words(corpus, batch)) > most - len(SPECIAL):
            yield from _narrow_enough(corpus, np.array_split(batch, 2), most)
        else:
            yield batch


def target_words(corpus: Corpus, batch: Positions) -> Ints:
    """Return the distinct target words of a minibatch without <unk> and </s>, ascending."""
    words = np.unique(corpus.target.take(batch)[0]).astype(np.int64)
    return words[~np.isin(words, SPECIAL)]


def describe_partitions(corpus: Corpus, config: TrainingConfig) -> list[str]:
    """Describe the partitions of the first epoch, if any, in lines for a log."""
    most = config.partition_words
    if not 0 < most < len(corpus.target_vocabulary):
        return []
    batches = list(epoch_batches(corpus, config, 0))
    widest = max(len(target_words(corpus, batch)) for batch in batches)
    if widest > most - len(SPECIAL):
        raise InputError(
            f"partition_words {most}: expected at least {widest + len(SPECIAL):,}, the distinct target words of the "
            f"widest minibatch with <unk> and </s>, found {most:,}",
            advice="A smaller --batch-size or batch_words makes narrower minibatches.",
        )
    sizes = [len(words) for words, _ in partitions_of(corpus, batches, most)]
    return [
        f"partitions of the first epoch: {len(sizes):,}, of {max(sizes):,} target words at most; the widest "
        f"minibatch has {widest:,}"
    ]


# --- ranking the right target above the same target with one word replaced --------------------------------------------


LEARNING, HELD_OUT = 0, 1  # random streams of corruptions
CORRUPTIONS = 10  # of each held-out pair
EVALUATION_PAIRS = 2048
FIRST_WORD = END_ID + 1  # of the shortlist


class RankedPairs(Task):
    """The task of a ranker: each pair has a new corruption at each step; held-out pairs have ten fixed ones."""

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
        """Return the hinge loss; pair, step and seed determine the corruption, whoever computes it."""
        sources, targets, lengths = self._slotted(rows)
        wrong = self._corrupted(targets, lengths, hashes_of(rows, self.config.seed, step, LEARNING))
        right, wrong_scores = (self._scores(sources, each, self.drop(step, part)) for each in (targets, wrong))
        loss = hinge(right, wrong_scores).sum()
        return Cost(loss, loss.item(), len(rows))

    def held_out(self, threads: Threads) -> dict[str, float]:
        """Return the share of held-out corruptions that score at least as high as their pair, and the loss."""
        rows = self.corpus.held_out
        blocks = (rows[first : first + EVALUATION_PAIRS] for first in range(0, len(rows), EVALUATION_PAIRS))
        costs = threads.each(self._exact_cost, blocks)
        wrong, loss = (sum(column) / (CORRUPTIONS * len(rows)) for column in zip(*costs, strict=True))
        return {RANKED_WRONG.key: wrong, "ranked_right": 1 - wrong, RANKED_WRONG.beside: loss}

    @torch.no_grad()
    def _exact_cost(self, rows: Positions) -> tuple[float, float]:
        """Return the number of corruptions that do not score lower (NaN if the loss is not finite), and the loss."""
        sources, targets, lengths = self._slotted(rows)
        right = self._scores(sources, targets)
        errors, loss = 0.0, 0.0
        for number in range(CORRUPTIONS):
            hashes = hashes_of(rows, self.config.seed, number, HELD_OUT)
            wrong = self._scores(sources, self._corrupted(targets, lengths, hashes))
            loss += hinge(right, wrong).double().sum().item()
            errors += (right <= wrong).sum().item()
        return (errors if np.isfinite(loss) else float("nan")), loss

    def _slotted(self, rows: Positions) -> tuple[Ints, Ints, Lengths]:
        """Return sources and targets in slots, and the length of each target."""
        slots, (source, target) = self.model.config.slots, (self.corpus.source, self.corpus.target)
        flat, lengths = target.take(rows)
        sources = in_slots(*source.take(rows), slots, len(self.corpus.source_vocabulary))
        return sources, in_slots(flat, lengths, slots, len(self.corpus.target_vocabulary)), lengths

    def _corrupted(self, targets: Ints, lengths: Lengths, hashes: Hashes) -> Ints:
        last_only = self.model.config.corrupt == "last"
        return corrupted(targets, lengths, hashes, len(self.corpus.target_vocabulary), last_only=last_only)

    def _scores(self, sources: Ints, targets: Ints, drop: Drop = keep) -> Tensor:
        x, y = (torch.from_numpy(side).to(self.device) for side in (sources, targets))
        network: Ranker = self.model
        return network.scores(x, y, drop)


def hashes_of(rows: Positions, *seeds: int) -> Hashes:
    """Return a random 64-bit number for each pair of a corpus."""
    key = np.random.SeedSequence(seeds).generate_state(1, np.uint64)
    return mix(mix(rows.astype(np.uint64)) + key)


def corrupted(targets: Ints, lengths: Lengths, hashes: Hashes, words: int, *, last_only: bool) -> Ints:
    """Replace one word, or the last, of targets in slots (pairs × S) by another word of the shortlist, uniformly.

    `hashes` has a random 64-bit number for each pair, which decides.
    """
    every = np.arange(len(targets))
    places = lengths - 1 if last_only else _below(lengths, hashes)
    replaced = targets[every, places]
    in_shortlist = replaced >= FIRST_WORD
    other = FIRST_WORD + _below(words - FIRST_WORD - in_shortlist, mix(hashes))
    result = targets.copy()
    result[every, places] = other + (in_shortlist & (other >= replaced))
    return result


def _below(bounds: Ints, hashes: Hashes) -> Ints:
    """Map hashes to numbers from 0 to below the bounds."""
    return (hashes % bounds.astype(np.uint64)).astype(np.int64)


# --- language models: n-grams in random order, or sentences in batches of similar length ------------------------------


WITHIN = 1  # random stream of an epoch: of the n-grams in each block
EVALUATION_ROWS = 2048  # n-grams at once in evaluations


def _identity(corpus: TextCorpus, **learning: float) -> dict[str, Any]:
    digests = [hashlib.sha256(text.flat.data).hexdigest() for text in (corpus.text, corpus.held_out)]
    return {"text": digests[0], "held-out text": digests[1], "words": corpus.vocabulary.sha256(), **learning}


class NGrams(Task):
    """The task of a CSLM or of Bengio's network, with a penalty `self_normalise` (log Z)² in training."""

    unit = "n-grams"

    def __init__(
        self, model: nn.Module, corpus: TextCorpus, config: TrainingConfig, self_normalise: float = 0.0
    ) -> None:
        identity = _identity(corpus, self_normalise=self_normalise)
        super().__init__(model, config, identity, corpus.text.tokens())
        self._text, self._held_out, self._self_normalise = corpus.text, corpus.held_out, self_normalise

    def batches(self, epoch: int, first: int) -> Iterator[Positions]:
        """Yield every n-gram once, in random order within blocks of the text, which are in random order too."""
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
        """Return minus log p, plus the penalty on log Z."""
        log_p, log_Z = self._log_probs(self._text, rows, self.drop(step, part))
        nats = -log_p.sum()
        penalty = self._self_normalise * (log_Z**2).sum()
        return Cost(nats + penalty, nats.item(), len(rows))

    def held_out(self, threads: Threads) -> dict[str, float]:
        """Return the mean cost per held-out token, with unknown words as ``<unk>``, and the mean |log Z|."""
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
    """The task of an RNNLM on a text with one ``<s>`` before each sentence.

    A word's error is propagated `bptt` steps back; 0: to the beginning of its sentence.
    """

    unit = "sentences"

    def __init__(self, model: nn.Module, corpus: TextCorpus, config: TrainingConfig, bptt: int = 0) -> None:
        self._text, self._held_out, self._bptt = _Lines(corpus.text), _Lines(corpus.held_out), bptt
        super().__init__(model, config, _identity(corpus, bptt=bptt), len(self._text.lengths))

    def batches(self, epoch: int, first: int) -> Iterator[Positions]:
        """See `batches_by_length`."""
        rows, text = np.arange(self.examples), self._text
        return batches_by_length(rows, text.lengths.__getitem__, text.by_length, self.config, epoch, first)

    def cost(self, rows: Positions, step: int, part: int = 0) -> Cost:
        """Return minus log p of all words and ends."""
        nats, tokens = self._nats(self._text, rows, self.drop(step, part))
        return Cost(nats, nats.item(), tokens)

    def held_out(self, threads: Threads) -> dict[str, float]:
        """Return the mean cost per held-out token, with unknown words as ``<unk>``."""
        costs = threads.each(self._exact_cost, list(self._held_out.blocks()))
        nats, tokens = (sum(column) for column in zip(*costs, strict=True))
        return {"nats_per_token": nats / tokens}

    def describe(self) -> str:
        """Describe the network, and how far errors are propagated."""
        steps = f"{number_of(self._bptt, 'step')} back" if self._bptt else "to the sentence's beginning"
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
        """Sort sentences by length, longest first, keeping the order of ties."""
        return rows[np.argsort(-self.lengths[rows], kind="stable")]

    def take(self, rows: Positions) -> tuple[Ids, Lengths]:
        """Return the ids of sentences, concatenated without end symbols, and their lengths."""
        lengths = self.lengths[rows]
        return take_spans(self._flat, self._begins[rows], lengths), lengths

    def blocks(self) -> Iterator[Positions]:
        """Yield all sentences, longest first, in blocks of a bounded number of words."""
        order = self.by_length(np.arange(len(self.lengths)))
        return blocks_of_words(order, self.lengths[order], EVALUATION_WORDS)
