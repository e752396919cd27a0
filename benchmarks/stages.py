"""What the benchmarks share: their arguments, stages timed in turn, tables of rates, networks with random weights."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from moses_rnn.files.resumable import ResumableOutputs
from moses_rnn.files.streams import read_blocks
from moses_rnn.networks.encdec import ENCDEC, EncDec, EncDecConfig
from moses_rnn.networks.vocabulary import END_ID
from moses_rnn.score.workers import ChunkScorer, Threads, map_in_order
from moses_rnn.scorers.base import Tally, Values
from moses_rnn.scorers.open import Model
from moses_rnn.table.phrase_table import DEFAULT_FLOOR
from moses_rnn.table.table_blocks import CHUNK_LINES, Pairs, chunks_between_sources, parse_blocks
from moses_rnn.training.corpus import Corpus, CorpusConfig, Phrases, build_corpus
from moses_rnn.training.networks import PHRASES

Pair = tuple[bytes, bytes]  # source phrase, target phrase


def make_parser(doc: str, material: str = "table", rounds: int = 3) -> argparse.ArgumentParser:
    """The arguments that all have; the first line of a script's docstring is its description."""
    parser = argparse.ArgumentParser(description=doc.split("\n", maxsplit=1)[0])
    parser.add_argument(material)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    return parser


def write_json(given: argparse.Namespace, **figures: object) -> None:
    """Write the figures where the user wants them."""
    if given.json:
        given.json.write_text(json.dumps({"command": sys.argv, **figures}, indent=2) + "\n")


@dataclass
class Stage:
    """Something that is timed; `items` go through it."""

    name: str
    work: Callable[[], object]
    items: int
    clock: Callable[[], float] = time.perf_counter  # or processor time, of all threads
    seconds: float = float("inf")

    def rate(self) -> float:
        """Items a second."""
        return self.items / self.seconds


def timed(stage: Stage) -> float:
    """Seconds by the stage's own clock."""
    started = stage.clock()
    stage.work()
    return stage.clock() - started


def time_in_turn(stages: Sequence[Stage], rounds: int) -> None:
    """Keep each stage's best time: machines are shared."""
    for _ in range(rounds):
        for stage in stages:
            stage.seconds = min(stage.seconds, timed(stage))


def print_rates(title: str, unit: str, stages: Sequence[Stage]) -> dict[str, float]:
    """Print each rate, and as a multiple of the first; the rates by name."""
    print(f"{title:<56}{unit + '/s':>16}{'× naive':>10}")
    for stage in stages:
        print(f"{stage.name:<56}{stage.rate():>16,.1f}{stage.rate() / stages[0].rate():>10.2f}")
    return {stage.name: stage.rate() for stage in stages}


@contextlib.contextmanager
def threads_of_each(workers: int) -> Iterator[None]:
    """Share the threads of torch among workers."""
    threads = torch.get_num_threads()
    torch.set_num_threads(max(threads // workers, 1))
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def pairs_of(blocks: Iterable[bytes], name: str) -> Iterator[Pair]:
    """The phrase pairs of a table."""
    both = (block.pairs() for block in parse_blocks(blocks, name))
    return (pair for pairs in both for pair in zip(pairs.sources, pairs.targets, strict=True))


def phrase_network(table: str, preset: str, folder: str, held_out: int = 1000) -> tuple[Corpus, EncDecConfig]:
    """The corpus of a table with a preset's shortlists, in a folder, and the sizes of a network that learns it."""
    sizes = PHRASES[preset]
    shortlists = CorpusConfig(sizes.shortlist, sizes.shortlist, held_out)
    corpus = build_corpus(pairs_of(read_blocks(table), table), Path(folder), shortlists)
    return corpus, EncDecConfig(len(corpus.source_vocabulary), len(corpus.target_vocabulary), **sizes.network)


def untrained(table: str, preset: str) -> Model:
    """A network of a preset's sizes with random weights and the table's own shortlists."""
    with tempfile.TemporaryDirectory() as folder:
        corpus, config = phrase_network(table, preset, folder)
    words = {"source": corpus.source_vocabulary, "target": corpus.target_vocabulary}
    return Model(ENCDEC, EncDec(config, seed=1).eval(), words)


def texts_of(phrases: Phrases, rows: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
    """Phrases of a corpus, as ids."""
    flat, lengths = phrases.take(rows)
    return np.split(flat, np.cumsum(lengths)[:-1])


def padded(texts: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Ids with ``</s>``, and where they are; texts × longest."""
    ids = pad_sequence([torch.tensor([*text, END_ID]) for text in texts], batch_first=True, padding_value=END_ID)
    return ids, torch.arange(ids.shape[1])[None, :] <= torch.tensor(list(map(len, texts)))[:, None]


class Random:
    """A scorer that costs next to nothing: what is left is reading, parsing, formatting, compressing and writing."""

    name, meaning = "Random", "nothing"
    unbounded = False
    values = np.random.default_rng(1).uniform(-30.0, 0.0, 2 * CHUNK_LINES)

    def log_probs(self, pairs: Pairs, _tally: Tally | None = None) -> Values:
        """Something else for every pair, as digits that compress no better than real ones."""
        return self.values[: len(pairs)]


def score_table(table: str, path: str, scorer: object, workers: int) -> None:
    """Read, score and write as moses-rnn-score does."""
    with ResumableOutputs([path]) as output, threads_of_each(workers):
        output.begin({})
        chunks = chunks_between_sources(parse_blocks(read_blocks(table), table))
        with Threads([ChunkScorer([scorer], table, path, DEFAULT_FLOOR)] * workers) as threads:
            for _, (block, _) in map_in_order(chunks, threads):
                output.append(path, block)
                output.save({})
        output.commit()
    Path(path).unlink()
