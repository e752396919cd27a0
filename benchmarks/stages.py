"""Shared by the benchmarks: arguments, timing in turn, tables of rates, networks with random weights."""

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
from moses_rnn.models.base import Tally, Values
from moses_rnn.models.model import Model
from moses_rnn.networks.encdec import ENCDEC, EncDec, EncDecConfig
from moses_rnn.networks.vocabulary import END_ID
from moses_rnn.score.workers import ChunkScorer, ThreadWorkers, map_in_order
from moses_rnn.table.phrase_table import DEFAULT_FLOOR
from moses_rnn.table.table_blocks import CHUNK_LINES, Pairs, chunks_between_sources, parse_blocks
from moses_rnn.training.corpus import Corpus, CorpusConfig, Phrases, build_corpus
from moses_rnn.training.presets import PHRASES

Pair = tuple[bytes, bytes]  # source phrase, target phrase


def make_parser(doc: str, material: str = "table", rounds: int = 3) -> argparse.ArgumentParser:
    """Make a parser with the arguments of all benchmarks, described by the first line of a docstring."""
    parser = argparse.ArgumentParser(description=doc.split("\n", maxsplit=1)[0])
    parser.add_argument(material)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    return parser


def write_json(given: argparse.Namespace, **figures: object) -> None:
    """Write the figures to the file of --json, if given."""
    if given.json:
        given.json.write_text(json.dumps({"command": sys.argv, **figures}, indent=2) + "\n")


@dataclass
class Stage:
    """A piece of work to time, on `items` items."""

    name: str
    work: Callable[[], object]
    items: int
    clock: Callable[[], float] = time.perf_counter  # or CPU time of all threads
    seconds: float = float("inf")

    def rate(self) -> float:
        """Return items per second."""
        return self.items / self.seconds


def timed(stage: Stage) -> float:
    """Run a stage once; return its seconds by its own clock."""
    started = stage.clock()
    stage.work()
    return stage.clock() - started


def time_in_turn(stages: Sequence[Stage], rounds: int) -> None:
    """Run the stages in turn and keep each one's best time, because machines are shared; say it as it goes."""
    for _ in range(rounds):
        for stage in stages:
            stage.seconds = min(stage.seconds, timed(stage))
            print(f"{stage.rate():,.0f}/s: {stage.name}", file=sys.stderr, flush=True)


def print_rates(title: str, unit: str, stages: Sequence[Stage]) -> dict[str, float]:
    """Print each rate, also as a multiple of the first; return the rates by name."""
    print(f"{title:<56}{unit + '/s':>16}{'× naive':>10}")
    for stage in stages:
        print(f"{stage.name:<56}{stage.rate():>16,.1f}{stage.rate() / stages[0].rate():>10.2f}")
    return {stage.name: stage.rate() for stage in stages}


@contextlib.contextmanager
def threads_of_each(workers: int) -> Iterator[None]:
    """Share torch's threads among workers."""
    threads = torch.get_num_threads()
    torch.set_num_threads(max(threads // workers, 1))
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def pairs_of(blocks: Iterable[bytes], name: str) -> Iterator[Pair]:
    """Yield the phrase pairs of a table."""
    both = (block.pairs() for block in parse_blocks(blocks, name))
    return (pair for pairs in both for pair in zip(pairs.sources, pairs.targets, strict=True))


def phrase_network(table: str, preset: str, folder: str, held_out: int = 1000) -> tuple[Corpus, EncDecConfig]:
    """Build a table's corpus with a preset's shortlists, in a folder; also return the config of a network for it."""
    sizes = PHRASES[preset]
    shortlists = CorpusConfig(sizes.shortlist, sizes.shortlist, held_out)
    corpus = build_corpus(pairs_of(read_blocks(table), table), Path(folder), shortlists)
    return corpus, EncDecConfig(len(corpus.source_vocabulary), len(corpus.target_vocabulary), **sizes.network)


def untrained(table: str, preset: str) -> Model:
    """Make a network of a preset's sizes with random weights and the table's own shortlists."""
    with tempfile.TemporaryDirectory() as folder:
        corpus, config = phrase_network(table, preset, folder)
    words = {"source": corpus.source_vocabulary, "target": corpus.target_vocabulary}
    return Model(ENCDEC, EncDec(config, seed=1).eval(), words)


def texts_of(phrases: Phrases, rows: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
    """Return phrases of a corpus as ids."""
    flat, lengths = phrases.take(rows)
    return np.split(flat, np.cumsum(lengths)[:-1])


def padded(texts: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Return padded ids with ``</s>``, and a mask of the real ones; both texts × longest."""
    ids = pad_sequence([torch.tensor([*text, END_ID]) for text in texts], batch_first=True, padding_value=END_ID)
    return ids, torch.arange(ids.shape[1])[None, :] <= torch.tensor(list(map(len, texts)))[:, None]


class Random:
    """A scorer that takes almost no time, to measure reading, parsing, formatting, compressing and writing."""

    name, meaning = "Random", "nothing"
    unbounded = False
    values = np.random.default_rng(1).uniform(-30.0, 0.0, 2 * CHUNK_LINES)

    def log_probs(self, pairs: Pairs, _tally: Tally | None = None) -> Values:
        """Return random scores, whose digits compress no better than real ones."""
        return self.values[: len(pairs)]


def score_table(table: str, path: str, scorer: object, workers: int) -> None:
    """Read, score and write as moses-rnn-score does."""
    with ResumableOutputs([path]) as output, threads_of_each(workers):
        output.begin({})
        chunks = chunks_between_sources(parse_blocks(read_blocks(table), table))
        with ThreadWorkers([ChunkScorer([scorer], table, path, DEFAULT_FLOOR)] * workers) as threads:
            for _, (block, _) in map_in_order(chunks, threads):
                output.append(path, block)
                output.save({})
        output.commit()
    Path(path).unlink()
