"""Measures how much faster than a naive loop each improvement makes training.

    python benchmarks/train.py PHRASE_TABLE [--preset paper] [--pairs N] [--one-thread] [--json FILE]

The first line is the naive loop: padded minibatches of 64 sorted over ten, whole softmax, float32, torch's Adadelta.
Each further line adds one improvement. All start with the same weights and learn the same pairs. Because machines are
shared, they take turns, a few minibatches at a time; then each continues for as long as the naive loop took. Quote the
ratios. If other processes use some of the cores, --one-thread compares the CPU time of one thread each.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from stages import Stage, make_parser, padded, phrase_network, print_rates, texts_of, threads_of_each, write_json
from torch import Tensor
from torch.nn.functional import cross_entropy, embedding, linear

from moses_rnn.networks.encdec import EncDec, EncDecConfig
from moses_rnn.networks.native_learning import instructions_to_learn
from moses_rnn.training.corpus import Corpus, Positions
from moses_rnn.training.presets import PHRASES, TrainingConfig
from moses_rnn.training.ranks import Threads
from moses_rnn.training.tasks import PhrasePairs, by_length, epoch_batches
from moses_rnn.training.trainer import Trainer

IGNORED = -100  # by cross_entropy
PAIRS_IN_TURN = 1024
HELD_OUT = 2000


class NaiveTrainer:
    """Pads to the longest phrase of the minibatch and runs one operation after the other."""

    def __init__(self, model: EncDec, corpus: Corpus, config: TrainingConfig) -> None:
        self.model, self.corpus, self.config = model, corpus, config
        self._optimiser = torch.optim.Adadelta(
            model.parameters(), lr=config.learning_rate, rho=config.rho, eps=config.epsilon, foreach=False
        )

    def learn(self, rows: Positions) -> None:
        """Take one gradient step."""
        loss = self.loss(by_length(self.corpus, rows))
        self._optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip_norm or math.inf, foreach=False)
        self._optimiser.step()

    def loss(self, rows: Positions) -> Tensor:
        """Return -log p, averaged over the pairs."""
        (source, source_mask), (target, target_mask) = (
            padded(texts_of(side, rows)) for side in (self.corpus.source, self.corpus.target)
        )
        encoder, decoder = self.model.encoder, self.model.decoder
        h = torch.zeros(len(rows), self.model.config.hidden_size)
        for t in range(source.shape[1]):
            e = embedding(source[:, t], encoder.embedding)
            z = torch.sigmoid(linear(e, encoder.W_z, encoder.b_z) + linear(h, encoder.U_z))
            r = torch.sigmoid(linear(e, encoder.W_r, encoder.b_r) + linear(h, encoder.U_r))
            new = torch.tanh(linear(e, encoder.W, encoder.b) + linear(r * h, encoder.U))
            h = torch.where(source_mask[:, t, None], z * h + (1 - z) * new, h)
        c = torch.tanh(linear(h, encoder.V, encoder.b_V))
        h = torch.tanh(linear(c, decoder.V, decoder.b_V))
        Cc, C_zc, C_rc = linear(c, decoder.C), linear(c, decoder.C_z, decoder.b_z), linear(c, decoder.C_r, decoder.b_r)
        O_cc = linear(c, decoder.O_c, decoder.b_O)
        e = torch.zeros(len(rows), self.model.config.embedding_size)
        costs = []
        for t in range(target.shape[1]):
            z = torch.sigmoid(linear(e, decoder.W_z) + linear(h, decoder.U_z) + C_zc)
            r = torch.sigmoid(linear(e, decoder.W_r) + linear(h, decoder.U_r) + C_rc)
            new = torch.tanh(linear(e, decoder.W) + r * (linear(h, decoder.U) + Cc) + decoder.b)
            h = z * h + (1 - z) * new
            s = (linear(h, decoder.O_h) + linear(e, decoder.O_y) + O_cc).view(len(rows), -1, 2).amax(2)
            logits = linear(linear(s, decoder.G_r), decoder.G_l, decoder.b_G)
            words = target[:, t].masked_fill(~target_mask[:, t], IGNORED)
            costs.append(cross_entropy(logits, words, reduction="sum", ignore_index=IGNORED))
            e = embedding(target[:, t], decoder.embedding)
        return torch.stack(costs).sum() / len(rows)


@dataclass
class Line:
    """A line of the printed table: one way of learning, and how far it has come."""

    name: str
    config: TrainingConfig
    trainer: NaiveTrainer | Trainer
    batches: Iterator[Positions]
    pairs: int = 0
    seconds: float = 0.0
    same_pairs: float = 0.0  # held-out nats per token
    same_time: float = 0.0

    def learn(self, pairs: int, clock: Callable[[], float]) -> None:
        """Learn whole minibatches with at least `pairs` pairs."""
        most = self.pairs + pairs
        with threads_of_each(self.config.threads):
            while self.pairs < most:
                rows = next(self.batches)
                started = clock()
                self.trainer.learn(rows)
                self.seconds += clock() - started
                self.pairs += len(rows)

    def held_out(self, corpus: Corpus) -> float:
        """Return the nats per token of the held-out pairs, in float32."""
        exact = replace(self.config, precision="fp32", native="")
        threads = Threads(torch.get_num_threads())
        with threads_of_each(threads.count):
            return PhrasePairs(self.trainer.model, corpus, exact).held_out(threads)["nats_per_token"]


def lines(corpus: Corpus, shape: EncDecConfig, config: TrainingConfig, given: argparse.Namespace) -> Iterator[Line]:
    """Yield the naive loop and each improvement, warmed up."""
    first = EncDec(shape, seed=1)

    def endless(config: TrainingConfig) -> Iterator[Positions]:
        return itertools.chain.from_iterable(epoch_batches(corpus, config, epoch) for epoch in itertools.count())

    plain = replace(config, precision="fp32")
    naive = NaiveTrainer(copy.deepcopy(first), corpus, plain)
    yield Line("naive: padded, 64 pairs, fp32, Adadelta", plain, naive, endless(plain))
    for name, chosen in levers(plain, given):
        print(f"warming up: {name}", file=sys.stderr)
        batches = endless(chosen)
        warm, trainer = (Trainer(PhrasePairs(copy.deepcopy(first), corpus, chosen)) for _ in range(2))
        with threads_of_each(chosen.threads):
            for _ in range(2):
                warm.learn(next(batches))
        yield Line(name, chosen, trainer, endless(chosen))


def levers(plain: TrainingConfig, given: argparse.Namespace) -> Iterator[tuple[str, TrainingConfig]]:
    """Yield the improvements; a name with + builds on the line before it."""
    yield "nothing padded, gradients written out", plain
    best = replace(plain, precision="bf16")
    yield "+ bf16 products", best
    for precision in ("fp32", "bf16"):  # the last that the core has is the fastest
        if native := instructions_to_learn("cpu", precision):
            best = replace(plain, precision=precision, native=native)
            yield f"native core, {precision}", best
    if not given.one_thread:
        best = replace(best, threads=torch.get_num_threads())
        yield "+ threads that share a minibatch", best
    for size in (128, 256, 512):
        yield f"+ {size} pairs per minibatch", replace(best, batch_size=size)


def race(table: list[Line], corpus: Corpus, pairs: int, clock: Callable[[], float]) -> list[Stage]:
    """Learn in turn: first the same pairs, whose times are returned, then for as long as the first line took."""
    while table[0].pairs < pairs:
        for line in table:
            line.learn(PAIRS_IN_TURN, clock)
    for line in table:
        line.same_pairs = line.held_out(corpus)
    stages = [Stage(line.name, line.trainer.learn, line.pairs, seconds=line.seconds) for line in table]
    for line in table:
        while line.seconds < table[0].seconds:
            line.learn(1, clock)
        line.same_time = line.held_out(corpus)
    return stages


def main() -> None:
    """Print the table."""
    parser = make_parser(__doc__)
    parser.add_argument("--preset", choices=PHRASES, default="paper")
    parser.add_argument("--pairs", type=int, default=4096)
    parser.add_argument("--one-thread", action="store_true")
    given = parser.parse_args()
    if given.one_thread:
        torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        corpus, shape = phrase_network(given.table, given.preset, folder, HELD_OUT)
        table = list(lines(corpus, shape, PHRASES[given.preset].training, given))
        stages = race(table, corpus, given.pairs, time.thread_time if given.one_thread else time.perf_counter)
    print(
        f"H {shape.hidden_size}, {shape.target_vocabulary_size:,} target words, {torch.get_num_threads()} threads, "
        f"torch {torch.__version__}"
    )
    rates = print_rates("", "pairs", stages)
    print("held-out nats per token after as many pairs, and after as much time, as the naive loop:")
    for line in table:
        print(f"{line.name:<56}{line.same_pairs:>16.4f}{line.same_time:>10.4f}")
    held_out = {line.name: [line.same_pairs, line.same_time] for line in table}
    write_json(given, pairs_per_second=rates, held_out_after_same_pairs_and_time=held_out)


if __name__ == "__main__":
    main()
