"""What training and scoring keep of their speed while another process has one of the cores.

    python benchmarks/shared_cores.py PHRASE_TABLE [--seconds 20] [--rounds 2] [--json FILE]

Every line works for some seconds with the machine for itself and then beside a process that computes without end, in
turn, several rounds; rates are of all rounds. Of two cores, half is what is left if the other process gets its own.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from stages import Pair, pairs_of

from moses_rnn.files.streams import read_blocks
from moses_rnn.networks.cslm import Cslm, CslmConfig
from moses_rnn.networks.encdec import ENCDEC, EncDec, EncDecConfig
from moses_rnn.networks.native_learning import instructions_to_learn
from moses_rnn.scorers.open import Model
from moses_rnn.table.table_blocks import Pairs
from moses_rnn.training.config import TrainingConfig
from moses_rnn.training.corpus import Corpus, CorpusConfig, build_corpus
from moses_rnn.training.language_models import NGrams
from moses_rnn.training.networks import NETWORKS, PHRASES
from moses_rnn.training.pairs import PhrasePairs
from moses_rnn.training.ranks import share_cores
from moses_rnn.training.task import Task
from moses_rnn.training.texts import TextCorpus, TextStatistics, build_texts
from moses_rnn.training.trainer import Trainer

CHUNK = 1024  # pairs scored by a worker at once
SHARES = 4  # of each worker in a step: one that is slower takes fewer


@dataclass
class Line:
    """Something that is done again and again; a step says how many examples it was."""

    name: str
    step: Callable[[], int]
    torch_threads: int
    done: dict[str, int]
    seconds: dict[str, float]

    def work(self, seconds: float, when: str) -> None:
        """Work for this many seconds."""
        torch.set_num_threads(self.torch_threads)
        started, done = time.perf_counter(), 0
        while time.perf_counter() - started < seconds:
            done += self.step()
        self.done[when] = self.done.get(when, 0) + done
        self.seconds[when] = self.seconds.get(when, 0.0) + time.perf_counter() - started

    def rate(self, when: str) -> float:
        """Examples a second."""
        return self.done[when] / self.seconds[when]


def line(name: str, step: Callable[[], int]) -> Line:
    """A line that has been warmed up, with the threads that torch has now."""
    step()
    return Line(name, step, torch.get_num_threads(), {}, {})


def learner(name: str, task: Task, config: TrainingConfig) -> Line:
    """A line that learns."""
    trainer = Trainer(task, config)
    batches = itertools.chain.from_iterable(task.batches(epoch, 0) for epoch in itertools.count())

    def step() -> int:
        rows = next(batches)
        trainer.learn(rows)
        return len(rows)

    return line(name, step)


def scoring_line(name: str, model: Model, pairs: list[Pair], workers: int, precision: str) -> Line:
    """A line that scores, each worker its own pairs."""
    compute = model.choose_compute(precision=precision)
    scorer = model.make_scorer(compute)
    pool = ThreadPoolExecutor(workers)
    chunks = [pairs[i * CHUNK : (i + 1) * CHUNK] for i in range(SHARES * workers)]
    shares = [Pairs.of(chunk) for chunk in chunks if chunk]
    torch.set_num_threads(1)

    def step() -> int:
        return sum(len(scores) for scores in pool.map(scorer.log_probs, shares))

    return line(f"{name}{', native core' * compute.native}", step)


def busy() -> None:
    """Compute without end."""
    while True:
        sum(range(100_000))


@contextlib.contextmanager
def neighbour() -> Iterator[None]:
    """Another process that always wants a core."""
    process = multiprocessing.get_context("spawn").Process(target=busy, daemon=True)
    process.start()
    time.sleep(1)
    try:
        yield
    finally:
        process.kill()
        process.join()


def lines(corpus: Corpus, pairs: list[Pair], folder: Path, preset: str) -> Iterator[Line]:
    """Training of both networks as the commands arrange it, and scoring."""
    cores = torch.get_num_threads()
    sizes = PHRASES[preset]
    words = len(corpus.source_vocabulary), len(corpus.target_vocabulary)
    shape = EncDecConfig(*words, **sizes.network)
    native = instructions_to_learn("cpu", sizes.training.precision)
    threads = share_cores(cores, sizes.training.batch_size, native=bool(native))
    config = replace(sizes.training, native=native, threads=threads)
    yield learner(
        f"moses-rnn-train --preset {preset}{', native core' * bool(native)}",
        PhrasePairs(EncDec(shape, seed=1), corpus, config),
        config,
    )
    small = NETWORKS["cslm"].presets["small"]
    network = CslmConfig(words[1], **small.network)
    text = build_texts((target for _, target in pairs), [pairs[0][1]], folder, corpus.target_vocabulary, network.order)
    config = replace(small.training, threads=share_cores(cores, small.training.batch_size))
    material = TextCorpus(*text, corpus.target_vocabulary, TextStatistics(len(pairs), 0, 0, 1.0, 0))
    yield learner("moses-rnn cslm train", NGrams(Cslm(network, seed=1), material, config), config)
    vocabularies = {"source": corpus.source_vocabulary, "target": corpus.target_vocabulary}
    model = Model(ENCDEC, EncDec(shape, seed=1).eval(), vocabularies)
    for precision in ("fp32", "bf16"):
        yield scoring_line(f"moses-rnn-score --precision {precision}", model, pairs, cores, precision)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("table")
    parser.add_argument("--preset", choices=PHRASES, default="small")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pairs = list(pairs_of(read_blocks(given.table), given.table))
        words = PHRASES[given.preset].shortlist
        corpus = build_corpus(pairs, Path(folder), CorpusConfig(words, words))
        table = list(lines(corpus, pairs, Path(folder), given.preset))
        for _ in range(given.rounds):
            for one in table:
                one.work(given.seconds, "quiet")
                with neighbour():
                    one.work(given.seconds, "shared")
    print(f"{'examples a second':<40}{'quiet':>10}{'one core taken':>16}{'kept':>8}")
    for one in table:
        quiet, shared = one.rate("quiet"), one.rate("shared")
        print(f"{one.name:<40}{quiet:>10,.0f}{shared:>16,.0f}{shared / quiet:>8.0%}")
    if given.json:
        record = {one.name: {when: one.rate(when) for when in one.done} for one in table}
        given.json.write_text(json.dumps({"command": sys.argv, "lines": record}, indent=2) + "\n")


if __name__ == "__main__":
    main()
