"""All of scoring a table but the network, stage by stage: with the native core and without it, in turn.

    python benchmarks/table.py PHRASE_TABLE [--lines N] [--rounds N] [--json FILE]

Lines a second of one core, by the processor time of the thread, the best of several rounds. The last two rows are the
whole, with a scorer that costs nothing: by the processor time of all threads together, and by the clock. Quote the
ratios.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from moses_rnn.files.outputs import Packing, ResumableOutputs
from moses_rnn.files.streams import read_blocks
from moses_rnn.native import SWITCH, native_core
from moses_rnn.networks.vocabulary import Vocabulary, shortlist
from moses_rnn.score.reading import CHUNK_LINES, chunks_between_sources
from moses_rnn.score.workers import ChunkScorer, Threads, map_in_order, to_column
from moses_rnn.scorers.base import Scores, Tally
from moses_rnn.table.phrase_forms import words
from moses_rnn.table.phrase_table import DEFAULT_FLOOR
from moses_rnn.table.table_blocks import Pairs, PhraseIds, TableLines, parse_blocks

WORDS = 15_000  # of the shortlist
WORKERS = 2  # beside the thread that reads and writes


@dataclass
class Row:
    """A stage, and the best seconds of it by each way."""

    name: str
    work: Callable[[], object]
    clock: Callable[[], float] = time.thread_time
    seconds: dict[str, float] = field(default_factory=dict)

    def time(self, way: str) -> None:
        """Do it once."""
        started = self.clock()
        self.work()
        self.seconds[way] = min(self.seconds.get(way, float("inf")), self.clock() - started)


class Random:
    """A scorer that costs next to nothing."""

    name, num_scores, meaning = "Random", 1, "nothing"
    unbounded = False
    values = np.random.default_rng(1).uniform(-30.0, 0.0, (2 * CHUNK_LINES, 1))

    def log_probs(self, pairs: Pairs, _tally: Tally | None = None) -> Scores:
        """Something else for every pair, as digits that compress no better than real ones."""
        return self.values[: len(pairs)]


def whole(table: str, path: str) -> None:
    """Read, score and write as moses-rnn-score does."""
    with ResumableOutputs([path]) as output:
        output.begin({})
        lines = parse_blocks(read_blocks(table), table)
        with Threads([ChunkScorer([Random()], table, DEFAULT_FLOOR, Packing(gzip=True))] * WORKERS) as workers:
            for _, scored in map_in_order(chunks_between_sources(lines), workers):
                output.append(path, scored.block)
                output.save({})
        output.commit()
    Path(path).unlink()


def shortlist_of(chunks: Sequence[TableLines]) -> Vocabulary:
    """The most frequent target words."""
    return shortlist(
        Counter(word for chunk in chunks for phrase in chunk.pairs().targets for word in words(phrase)), WORDS
    )


def stages(blocks: Sequence[bytes], folder: Path) -> list[Row]:
    """What a line goes through."""
    table, out = folder / "table.gz", str(folder / "out.gz")
    table.write_bytes(b"".join(Packing(gzip=True)(block) for block in blocks))
    chunks = list(chunks_between_sources(parse_blocks(blocks, "table")))
    targets = [chunk.pairs().targets for chunk in chunks]
    vocabulary = shortlist_of(chunks)

    def written() -> list[bytes]:
        return [chunk.append_scores(to_column(Random.values[: len(chunk)], DEFAULT_FLOOR)) for chunk in chunks]

    scored = written()

    def ids() -> object:
        of_phrases = PhraseIds(vocabulary.id_of())
        return [of_phrases(phrases) for phrases in targets]

    return [
        Row("read a .gz in blocks", lambda: sum(map(len, read_blocks(str(table))))),
        Row("parse", lambda: list(parse_blocks(blocks, "table"))),
        Row("cut into chunks, after parsing", lambda: list(chunks_between_sources(parse_blocks(blocks, "table")))),
        Row("target words to ids", ids),
        Row("add scores", written),
        Row("compress", lambda: [Packing(gzip=True)(block) for block in scored]),
        Row("all but scoring, all threads together", lambda: whole(str(table), out), time.process_time),
        Row(f"the same by the clock, {WORKERS} workers", lambda: whole(str(table), out), time.perf_counter),
    ]


def first_blocks(table: str, lines: int) -> list[bytes]:
    """The table's beginning."""
    blocks = []
    for block in read_blocks(table):
        blocks.append(block)
        lines -= block.count(b"\n")
        if lines <= 0:
            break
    return blocks


def arguments() -> argparse.Namespace:
    """What the user wants."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("table")
    parser.add_argument("--lines", type=int, default=500_000, help="at most, in whole blocks")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def main() -> None:
    """Print the table of stages."""
    given = arguments()
    blocks = first_blocks(given.table, given.lines)
    count = sum(block.count(b"\n") for block in blocks)
    ways = {"native": os.environ.get(SWITCH), "python": "0"} if native_core() else {"python": "0"}
    with tempfile.TemporaryDirectory() as folder:
        rows = stages(blocks, Path(folder))
        for _, row, way in itertools.product(range(given.rounds), rows, ways):
            switch(ways[way])
            row.time(way)
    report(rows, list(ways), count, given)


def switch(setting: str | None) -> None:
    """Choose by the variable that users have for it."""
    os.environ.pop(SWITCH, None)
    if setting is not None:
        os.environ[SWITCH] = setting


def report(rows: Sequence[Row], ways: Sequence[str], count: int, given: argparse.Namespace) -> None:
    """Print, and write the same as JSON."""
    print(f"{count:,} lines; lines a second of one core, best of {given.rounds} rounds")
    print(f"{'':<40}" + "".join(f"{way:>14}" for way in ways) + f"{'×':>8}")
    for row in rows:
        rates = "".join(f"{count / row.seconds[way]:>14,.0f}" for way in ways)
        print(f"{row.name:<40}{rates}{row.seconds[ways[-1]] / row.seconds[ways[0]]:>8.2f}")
    if given.json:
        figures = {"command": sys.argv, "lines": count, "stages": {row.name: row.seconds for row in rows}}
        given.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
