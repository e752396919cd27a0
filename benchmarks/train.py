"""Training, lever by lever, as ratios taken in one run.

    python benchmarks/train.py PHRASE_TABLE [--preset paper] [--pairs N] [--one-thread] [--json FILE]

The first line is a naive loop: padded minibatches of 64 sorted over ten, the whole softmax, float32, torch's Adadelta.
Each further line switches one lever on. All begin with the same weights and learn the same pairs, a few minibatches at
a time in turn, because machines are shared; then each continues until it has had the naive loop's time. Quote the
ratios. Where other processes have some of the cores, --one-thread compares processor time of one thread each.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from stages import gemm_rate, pairs_of, threads_of_each
from torch import Tensor
from torch.nn.functional import cross_entropy, embedding, linear

from moses_rnn.files.streams import read_blocks
from moses_rnn.networks.encdec import EncDec, EncDecConfig
from moses_rnn.networks.native_learning import instructions_to_learn
from moses_rnn.training.config import TrainingConfig
from moses_rnn.training.corpus import Corpus, CorpusConfig, Positions, build_corpus
from moses_rnn.training.networks import PHRASES
from moses_rnn.training.pairs import PhrasePairs, by_length, epoch_batches
from moses_rnn.training.ranks import Threads
from moses_rnn.training.trainer import Trainer

IGNORED = -100  # by cross_entropy
WARM_UP = 40  # minibatches learned by another network, while torch compiles
PAIRS_IN_TURN = 1024
HELD_OUT = 2000


class NaiveTrainer:
    """Everything padded to the longest phrase of the minibatch, one operation after the other."""

    def __init__(self, model: EncDec, corpus: Corpus, config: TrainingConfig) -> None:
        self.model, self.corpus, self.config = model, corpus, config
        self._optimiser = torch.optim.Adadelta(
            model.parameters(), lr=config.learning_rate, rho=config.rho, eps=config.epsilon, foreach=False
        )

    def learn(self, rows: Positions) -> None:
        """One gradient step."""
        loss = self.loss(by_length(self.corpus, rows))
        self._optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip_norm, foreach=False)
        self._optimiser.step()

    def loss(self, rows: Positions) -> Tensor:
        """-log p of a pair, averaged over the pairs."""
        (source, source_mask), (target, target_mask) = self._padded(rows)
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

    def _padded(self, rows: Positions) -> list[tuple[Tensor, Tensor]]:
        sides = []
        for phrases in (self.corpus.source, self.corpus.target):
            flat, lengths = phrases.take(rows)
            ids, first = torch.full((len(rows), int(lengths.max()) + 1), 1), 0
            for row, length in enumerate(lengths.tolist()):
                ids[row, :length] = torch.from_numpy(flat[first : first + length])
                first += length
            mask = torch.arange(ids.shape[1])[None, :] <= torch.from_numpy(lengths)[:, None]
            sides.append((ids, mask))
        return sides


@dataclass
class Line:
    """One line of the table: something that learns minibatches."""

    name: str
    config: TrainingConfig
    trainer: NaiveTrainer | Trainer
    batches: Iterator[Positions]
    clock: Callable[[], float]
    pairs: int = 0
    tokens: int = 0
    seconds: float = 0.0
    same_pairs: float = 0.0  # held-out nats per token
    same_time: float = 0.0

    def learn(self, pairs: int, corpus: Corpus) -> None:
        """Learn this many pairs, or a few more."""
        with threads_of_each(self.config.threads):
            self._learn(self.pairs + pairs, corpus)

    def _learn(self, most: int, corpus: Corpus) -> None:
        while self.pairs < most:
            rows = next(self.batches)
            started = self.clock()
            self.trainer.learn(rows)
            self.seconds += self.clock() - started
            self.pairs += len(rows)
            self.tokens += int((corpus.target.ends[rows + 1] - corpus.target.ends[rows] + 1).sum())

    def held_out(self, corpus: Corpus) -> float:
        """Nats per token of the held-out pairs, in float32."""
        exact = replace(self.config, precision="fp32", compiled=False, native="")
        threads = Threads(torch.get_num_threads())
        with threads_of_each(threads.count):
            return PhrasePairs(self.trainer.model, corpus, exact).held_out(threads)["nats_per_token"]


def endless(corpus: Corpus, config: TrainingConfig) -> Iterator[Positions]:
    """The minibatches of one epoch after the other."""
    epoch = 0
    while True:
        yield from epoch_batches(corpus, config, epoch)
        epoch += 1


def lines(corpus: Corpus, shape: EncDecConfig, config: TrainingConfig, given: argparse.Namespace) -> Iterator[Line]:
    """The naive loop and the levers, warmed up."""
    first = EncDec(shape, seed=1)
    clock = time.thread_time if given.one_thread else time.perf_counter

    def fresh() -> EncDec:
        model = EncDec(shape, seed=None)
        model.load_state_dict(first.state_dict())
        return model

    plain = replace(config, compiled=False, precision="fp32")
    naive = NaiveTrainer(fresh(), corpus, plain)
    yield Line("naive: padded, 64 pairs, fp32, Adadelta", plain, naive, endless(corpus, plain), clock)
    for name, chosen in levers(plain, given):
        print(f"warming up: {name}", file=sys.stderr)
        batches = endless(corpus, chosen)
        warm = Trainer(PhrasePairs(fresh(), corpus, chosen), chosen)
        with threads_of_each(chosen.threads):  # what is compiled depends on it
            for _ in range(WARM_UP if chosen.compiled else 2):
                warm.learn(next(batches))
        trainer = Trainer(PhrasePairs(fresh(), corpus, chosen), chosen)
        yield Line(name, chosen, trainer, endless(corpus, chosen), clock)


def levers(plain: TrainingConfig, given: argparse.Namespace) -> Iterator[tuple[str, TrainingConfig]]:
    """What the table compares; lines that begin with + are added to the one before, but for those in brackets."""
    yield "nothing padded, gradients written out", plain
    best = replace(plain, precision="bf16")
    yield "+ bf16 products", best
    if not given.no_compile:
        yield "(fp32, compiled)", replace(plain, compiled=True)
        compiled = replace(best, compiled=True)
        yield "+ Adadelta in one pass, rest compiled", compiled
        best = compiled
    if native := instructions_to_learn("cpu", "fp32"):
        yield "(native core, fp32)", replace(plain, native=native)
    if native := instructions_to_learn("cpu", "bf16"):
        best = replace(best, compiled=False, native=native)
        yield "native core, bf16 products", best
    if not given.one_thread:
        best = replace(best, threads=torch.get_num_threads())
        yield "+ threads that share a minibatch", best
    for size in (128, 256, 512):
        yield f"+ {size} pairs a minibatch", replace(best, batch_size=size)


def flops_of_pair(shape: EncDecConfig, corpus: Corpus) -> float:
    """Floating-point operations of all products of a pair, there and back; a multiply-add is two."""
    H, E, M, R = shape.hidden_size, shape.embedding_size, shape.maxout_size, shape.output_rank
    rows = corpus.training
    read, written = (
        float((side.ends[rows + 1] - side.ends[rows] + 1).mean()) for side in (corpus.source, corpus.target)
    )
    state = 3 * H * (H + E)
    forward = read * state + H * (5 * H + 2 * M)
    forward += written * (state + 2 * M * (H + E) + M * R + R * shape.target_vocabulary_size)
    return 3 * 2 * forward  # back, once for the weights and once for what they are multiplied with


def main() -> None:
    """Print the table of levers."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("table")
    parser.add_argument("--preset", choices=PHRASES, default="paper")
    parser.add_argument("--pairs", type=int, default=12_800)
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--one-thread", action="store_true")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    preset = PHRASES[given.preset]
    if given.one_thread:
        torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        sizes = CorpusConfig(preset.shortlist, preset.shortlist, HELD_OUT)
        corpus = build_corpus(pairs_of(read_blocks(given.table), given.table), Path(folder), sizes)
        words = len(corpus.source_vocabulary), len(corpus.target_vocabulary)
        shape = EncDecConfig(*words, **preset.network)
        table = list(lines(corpus, shape, preset.training, given))
        race(table, corpus, given.pairs)
        report(table, corpus, shape, given)


def race(table: list[Line], corpus: Corpus, pairs: int) -> None:
    """Learn in turn: all as many pairs, then all as long as the first."""
    while table[0].pairs < pairs:
        for line in table:
            line.learn(PAIRS_IN_TURN, corpus)
    for line in table:
        line.same_pairs = line.held_out(corpus)
    for line in table[1:]:
        speed = line.pairs, line.tokens, line.seconds
        while line.seconds < table[0].seconds:
            line.learn(1, corpus)
        line.same_time = line.held_out(corpus)
        line.pairs, line.tokens, line.seconds = speed
    table[0].same_time = table[0].same_pairs


def report(table: list[Line], corpus: Corpus, shape: EncDecConfig, given: argparse.Namespace) -> None:
    """Print, and write the same as JSON."""
    print(
        f"{table[0].pairs:,} pairs, H {shape.hidden_size}, {shape.target_vocabulary_size:,} target words, "
        f"{torch.get_num_threads()} threads, torch {torch.__version__}"
    )
    rates = {"fp32": gemm_rate(torch.float32), "bf16": gemm_rate(torch.bfloat16)}
    print(f"{'':<44}{'pairs/s':>8}{'tokens/s':>10}{'× naive':>9}{'of peak':>9}{'same pairs':>12}{'same time':>11}")
    flops = flops_of_pair(shape, corpus)
    record = {}
    for line in table:
        rate = line.pairs / line.seconds
        gflops = 1e-9 * flops * rate
        share = gflops / rates[line.config.precision]
        ratio = rate / (table[0].pairs / table[0].seconds)
        print(
            f"{line.name:<44}{rate:>8,.0f}{line.tokens / line.seconds:>10,.0f}{ratio:>9.2f}{share:>9.0%}"
            f"{line.same_pairs:>12.4f}{line.same_time:>11.4f}"
        )
        record[line.name] = {
            "pairs_per_second": rate,
            "ratio": ratio,
            "gflops": gflops,
            "held_out_after_same_pairs": line.same_pairs,
            "held_out_after_same_time": line.same_time,
        }
    print(
        "same pairs, same time: held-out nats per token after as many pairs as the naive loop, and after its time; "
        f"peak: torch's own product, {rates['fp32']:,.0f} GFLOP/s fp32, {rates['bf16']:,.0f} bf16"
    )
    if given.json:
        figures = {"command": sys.argv, "lines": record, "gemm_gflops": rates}
        given.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
