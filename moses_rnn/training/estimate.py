"""How long a training will take here, judged by a few of its steps."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, replace

import torch

from moses_rnn.networks.encdec import EncDec, EncDecConfig
from moses_rnn.networks.hardware import choose_precision
from moses_rnn.networks.native_learning import instructions_to_learn
from moses_rnn.networks.translation_network import NetworkOfPairs
from moses_rnn.training.config import PRESETS, TrainingConfig
from moses_rnn.training.corpus import Corpus
from moses_rnn.training.ranking import task_of
from moses_rnn.training.trainer import Trainer

STEPS = 3  # after a first one that warms up
LEAST_SECONDS = 5.0  # of learning


@dataclass(frozen=True)
class Estimate:
    """What to expect of a training."""

    pairs: int  # in a pass
    pairs_per_second: float
    passes: float  # within the budget; infinite without one

    @property
    def seconds_of_a_pass(self) -> float:
        """How long each pass takes."""
        return self.pairs / self.pairs_per_second


def estimate(corpus: Corpus, model: NetworkOfPairs, config: TrainingConfig, seconds: float = LEAST_SECONDS) -> Estimate:
    """Learn for a moment, and extrapolate from that.

    Args:
        corpus: to be learned.
        model: which is changed.
        config: of the training.
        seconds: how long to learn at least.
    """
    rate = _pairs_per_second(corpus, model, config, seconds)
    by_time = 60 * config.max_minutes * rate / len(corpus.training) if config.max_minutes else float("inf")
    return Estimate(len(corpus.training), rate, min(by_time, config.max_epochs or float("inf")))


def advice(name: str, corpus: Corpus, device: str, threads: int) -> str:
    """How fast another preset would be here, in a line for a log."""
    expected = _estimate_preset(name, corpus, device, threads)
    return (
        f"no GPU: taking --preset small. --preset {name} would learn about {expected.pairs_per_second:,.0f} pairs/s "
        f"here: {expected.seconds_of_a_pass / 3600:.1f} hours for each pass over this table, of which it needs several"
    )


def _estimate_preset(name: str, corpus: Corpus, device: str, threads: int) -> Estimate:
    """What a preset would take, with weights of no meaning."""
    preset = PRESETS[name]
    known = (corpus.source_vocabulary, corpus.target_vocabulary)
    words = [max(preset.shortlist + 2, len(vocabulary)) for vocabulary in known]
    with torch.device(device):
        model = EncDec(EncDecConfig(words[0], words[1], **preset.network), seed=None)
    for tensor in model.parameters():
        torch.nn.init.normal_(tensor, std=0.01)
    precision = choose_precision("auto", device, preset.network["hidden_size"])
    native = instructions_to_learn(device, precision)
    training = replace(preset.training, threads=threads, precision=precision, native=native)
    return estimate(corpus, model, training, seconds=0.0)


def _pairs_per_second(corpus: Corpus, model: NetworkOfPairs, config: TrainingConfig, seconds: float) -> float:
    task = task_of(model, corpus, config)
    trainer = Trainer(task, config)
    batches = itertools.chain.from_iterable(task.batches(epoch, 0) for epoch in itertools.count())
    trainer.learn(next(batches))
    started, pairs, steps = time.monotonic(), 0, 0
    while steps < STEPS or time.monotonic() - started < seconds:
        rows = next(batches)
        trainer.learn(rows)
        steps, pairs = steps + 1, pairs + len(rows)
    return pairs / (time.monotonic() - started)
