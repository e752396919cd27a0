"""The training loop: minibatches of distinct pairs, gradient steps, held-out evaluation, best checkpoint, resume.

A run is a function of its configuration and its corpus: after a kill it continues from the last saved state and ends
with the weights that an undisturbed run would have.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from moses_rnn.errors import MosesRnnError
from moses_rnn.models.batches import Batch
from moses_rnn.models.encdec import EncDec
from moses_rnn.models.softmax import WordSample
from moses_rnn.training.adadelta import Adadelta
from moses_rnn.training.config import TrainingConfig
from moses_rnn.training.corpus import Corpus, Positions
from moses_rnn.training.state import load_state, save_state

ORDER, GROUPS = 0, 1  # random streams of an epoch: of its pairs, of the batches in each group
SAMPLES = 2  # and of a step: of words
EVALUATION_WORDS = 4096  # target words at once when nothing is learned from them


@dataclass
class Progress:
    """Where a run stands; all of it is saved and restored."""

    epoch: int = 0
    batch: int = 0  # within the epoch
    pairs: int = 0  # seen in all epochs
    tokens: int = 0  # target words and end symbols, likewise
    steps: int = 0
    clipped_steps: int = 0
    skipped_steps: int = 0  # the gradient was not finite
    seconds: float = 0.0
    pairs_at_evaluation: int = 0
    best: float = math.inf  # held-out nats per target token
    without_gain: int = 0  # evaluations
    learning_rate: float = 0.0
    finished: str = ""  # why, once it is
    history: list[dict[str, float]] = field(default_factory=list)


class Observer(Protocol):
    """Who is told how training goes. `evaluated` is also told whether these are the best weights so far."""

    def stepped(self, progress: Progress, loss: float) -> None:
        """Hear that a minibatch was learned; loss in nats per target token."""

    def evaluated(self, progress: Progress, is_best: bool) -> None:
        """Hear that the held-out pairs were scored; the figures are the last of ``progress.history``."""


class Trainer:
    """Trains a network on a corpus.

    Args:
        model: with its initial weights, on its device.
        corpus: pairs as ids.
        config: how.
        state_file: where the run's state is kept; an existing one is continued.
    """

    def __init__(self, model: EncDec, corpus: Corpus, config: TrainingConfig, state_file: Path) -> None:
        self.model = model
        self.corpus = corpus
        self.config = config
        self.progress = Progress(learning_rate=config.learning_rate)
        self._state_file = state_file
        self._device = next(model.parameters()).device
        self._started = self._saved = time.monotonic()
        self._unigram: npt.NDArray[np.float64] | None = None
        self._product = torch.bfloat16 if config.precision == "bf16" else torch.float32
        self._optimiser = make_optimiser(model, config)
        if config.compiled:
            model.compile_elementwise()
        self._identity = {"corpus": corpus.digest, **asdict(model.config), **config.course()}
        self.resumed = load_state(state_file, self._identity, self.model, self._optimiser, self.progress)

    def run(self, observer: Observer, should_stop: Callable[[], bool]) -> Progress:
        """Train until a limit is reached or `should_stop` says so; the state is saved either way.

        Args:
            observer: hears of every step and evaluation.
            should_stop: asked after every step; when true the run can be continued later.
        """
        progress = self.progress
        self._started = time.monotonic() - progress.seconds
        progress.finished = self._reason_to_finish()  # a limit may have been raised since the state was saved
        if not self.resumed:
            self.save()  # so that a checkpoint never stands without the state it came from
        while not progress.finished:
            for batch in epoch_batches(self.corpus, self.config, progress.epoch, progress.batch):
                observer.stepped(progress, self.learn(batch))
                if self._is_evaluation_due():
                    self._evaluate(observer)
                if progress.finished or should_stop():
                    self.save()
                    return progress
                self._save_now_and_then()
            progress.epoch, progress.batch = progress.epoch + 1, 0
        return progress

    def save(self) -> None:
        """Write the state from which a later run continues."""
        save_state(self._state_file, self._identity, self.model, self._optimiser, self.progress)
        self._saved = time.monotonic()

    def _save_now_and_then(self) -> None:
        if time.monotonic() - self._saved > 60 * self.config.save_minutes:
            self.save()

    def learn(self, rows: Positions) -> float:
        """One gradient step; returns the loss in nats per target token."""
        progress, config = self.progress, self.config
        log_probs = pair_log_probs(self.model, self.corpus, rows, self._device, self._product, self._sample())
        nats = -log_probs.sum()
        scale = {"sum": 1, "pair-mean": len(rows), "token-mean": len(log_probs)}[config.reduction]
        self._optimiser.zero_grad(set_to_none=True)
        (nats / scale).backward()  # type: ignore[no-untyped-call]
        gradients = [tensor.grad for tensor in self.model.parameters() if tensor.grad is not None]
        norm = float(torch.nn.utils.get_total_norm(gradients))
        if math.isfinite(norm):
            self._descend(gradients, min((config.clip_norm or math.inf) / (norm + 1e-6), 1.0))
        else:  # a step along NaN would lose the weights
            progress.skipped_steps += 1
        progress.clipped_steps += bool(config.clip_norm) and norm > config.clip_norm
        progress.steps += 1
        progress.batch += 1
        progress.pairs += len(rows)
        progress.tokens += len(log_probs)
        progress.seconds = time.monotonic() - self._started
        return nats.item() / len(log_probs)

    def _sample(self) -> WordSample | None:
        """The words to estimate the next step's normalisation by; seed and step determine them."""
        count = self.config.sampled_words
        if not count:
            return None
        if self._unigram is None:
            self._unigram = self.corpus.unigram_model()
        random = np.random.default_rng((self.config.seed, self.progress.steps, SAMPLES))
        words = random.choice(len(self._unigram), count, p=self._unigram)
        expected = torch.from_numpy(np.log(count * self._unigram[words])).float()
        return WordSample(torch.from_numpy(words).to(self._device), expected.to(self._device))

    def _descend(self, gradients: list[Tensor], scale: float) -> None:
        """One step along the gradients times `scale`."""
        if isinstance(self._optimiser, Adadelta):
            self._optimiser.step_along(scale)
            return
        torch._foreach_mul_(gradients, scale)
        self._optimiser.step()

    def _is_evaluation_due(self) -> bool:
        due = min(self.config.evaluate_every, len(self.corpus.training))
        return self.progress.pairs - self.progress.pairs_at_evaluation >= due or self._limit_reached() != ""

    def _limit_reached(self) -> str:
        config, progress = self.config, self.progress
        if config.max_minutes and progress.seconds >= 60 * config.max_minutes:
            return f"the time budget of {config.max_minutes:g} minutes is used"
        if config.max_epochs and progress.pairs >= config.max_epochs * len(self.corpus.training):
            return f"{config.max_epochs:g} epochs are done"
        return ""

    def _reason_to_finish(self) -> str:
        impatient = self.progress.without_gain >= self.config.patience
        return self._limit_reached() or (f"{self.config.patience} evaluations brought no gain" if impatient else "")

    def _evaluate(self, observer: Observer) -> None:
        progress, config = self.progress, self.config
        per_token, per_pair = self.held_out_nats()
        if not math.isfinite(per_token):
            raise MosesRnnError(
                f"training diverged: after {progress.pairs:,} pairs the held-out ones cost {per_token} nats per token\n"
                "  Begin anew with --restart and a lower --learning-rate or --clip-norm."
            )
        is_best = per_token < progress.best
        progress.pairs_at_evaluation = progress.pairs
        progress.history.append(
            {
                "pairs": progress.pairs,
                "epochs": progress.pairs / len(self.corpus.training),
                "seconds": round(progress.seconds, 1),
                "nats_per_token": per_token,
                "nats_per_pair": per_pair,
                "clipped_share": progress.clipped_steps / progress.steps,
                "learning_rate": progress.learning_rate,
                "tokens_per_second": progress.tokens / progress.seconds,
            }
        )
        if is_best:
            progress.best, progress.without_gain = per_token, 0
        else:
            progress.without_gain += 1
            self._set_learning_rate(progress.learning_rate * config.decay_on_plateau)
        progress.finished = self._reason_to_finish()
        observer.evaluated(progress, is_best)

    def _set_learning_rate(self, rate: float) -> None:
        self.progress.learning_rate = rate
        for group in self._optimiser.param_groups:
            group["lr"] = rate

    @torch.no_grad()
    def held_out_nats(self) -> tuple[float, float]:
        """Mean cost of the held-out pairs: nats per target token (end symbols included), nats per pair."""
        rows = by_length(self.corpus, self.corpus.held_out)
        nats, tokens = 0.0, 0
        for block in evaluation_blocks(self.corpus, rows):
            log_probs = pair_log_probs(self.model, self.corpus, block, self._device, self._product)
            nats -= log_probs.double().sum().item()
            tokens += len(log_probs)
        return nats / tokens, nats / len(rows)


def make_optimiser(model: EncDec, config: TrainingConfig) -> torch.optim.Optimizer:
    """Adadelta (Zeiler 2012, ε inside both roots) or Adam over all weights."""
    if config.optimiser == "adam":
        return torch.optim.Adam(model.parameters(), lr=config.learning_rate, fused=True)
    settings = {"lr": config.learning_rate, "rho": config.rho, "epsilon": config.epsilon}
    return Adadelta(model.parameters(), **settings, one_pass=config.compiled)


def epoch_batches(corpus: Corpus, config: TrainingConfig, epoch: int, first: int = 0) -> Iterator[Positions]:
    """The minibatches of an epoch from a given one on; seed and epoch determine them.

    Every training pair comes once. Groups of ``sort_batches`` minibatches are drawn uniformly, sorted by length and
    cut; the minibatches of a group then come in random order, so that no length is always learned last.
    """
    order = np.random.default_rng((config.seed, epoch, ORDER)).permutation(corpus.training)
    size = config.batch_size * max(config.sort_batches, 1)
    before = 0  # minibatches of earlier groups
    for number in range(math.ceil(len(order) / size)):
        group = order[number * size : (number + 1) * size]
        if not config.batch_tokens and before + config.sort_batches < first and len(group) == size:
            before += size // config.batch_size
            continue
        cut = _minibatches(corpus, config, group)
        shuffled = np.random.default_rng((config.seed, epoch, GROUPS, number)).permutation(len(cut))
        for i in shuffled[max(first - before, 0) :]:
            yield cut[i]
        before += len(cut)


def _minibatches(corpus: Corpus, config: TrainingConfig, group: Positions) -> list[Positions]:
    """A group of pairs cut by length, into minibatches within both limits."""
    if config.sort_batches > 1:
        group = by_length(corpus, group)
    tokens = np.cumsum(corpus.target.ends[group + 1] - corpus.target.ends[group] + 1)
    cut, first, tokens_before = [], 0, 0
    while first < len(group):
        last = first + config.batch_size
        if config.batch_tokens:
            fitting = int(np.searchsorted(tokens, tokens_before + config.batch_tokens, side="right"))
            last = min(last, max(fitting, first + 1))
        cut.append(group[first:last])
        first, tokens_before = last, int(tokens[min(last, len(group)) - 1])
    return cut


def evaluation_blocks(corpus: Corpus, rows: Positions) -> Iterator[Positions]:
    """Pairs, sorted longest first, in blocks that hold a bounded number of target words."""
    first = 0
    while first < len(rows):
        longest = int(corpus.target.ends[rows[first] + 1] - corpus.target.ends[rows[first]]) + 1
        size = max(EVALUATION_WORDS // longest, 1)
        yield rows[first : first + size]
        first += size


def by_length(corpus: Corpus, rows: Positions) -> Positions:
    """Pairs sorted by target length, then source length, longest first."""
    target = corpus.target.ends[rows + 1] - corpus.target.ends[rows]
    source = corpus.source.ends[rows + 1] - corpus.source.ends[rows]
    return rows[np.lexsort((-source, -target))]


def pair_log_probs(
    model: EncDec,
    corpus: Corpus,
    rows: Positions,
    device: torch.device,
    product: torch.dtype | None = None,
    sample: WordSample | None = None,
) -> Tensor:
    """Score every target word and end symbol of some pairs by its log p, in no particular order; nodes."""
    by_target = by_length(corpus, rows)
    source_lengths = corpus.source.ends[by_target + 1] - corpus.source.ends[by_target]
    by_source = np.argsort(-source_lengths, kind="stable")
    source_of = np.empty_like(by_source)
    source_of[by_source] = np.arange(len(by_source))
    sources = Batch.from_flat(*corpus.source.take(by_target[by_source]), device)
    targets = Batch.from_flat(*corpus.target.take(by_target), device)
    return model.word_log_probs(sources, targets, torch.from_numpy(source_of).to(device), product, sample)
