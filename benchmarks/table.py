"""Measures each stage of scoring a table except the network, with and without the native core.

    python benchmarks/table.py PHRASE_TABLE [--lines N] [--rounds N] [--json FILE]

Rates are lines per second of one core, by CPU time of the thread; the best of several rounds counts. The last two rows
are the whole program with a scorer that takes no time, by CPU time of all threads and by the clock. Quote the ratios.
"""

from __future__ import annotations

import itertools
import os
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from stages import Random, Stage, make_parser, score_table, timed, write_json

from moses_rnn.files.outputs import pack
from moses_rnn.files.streams import read_blocks
from moses_rnn.native import INSTRUCTION_SETS, SWITCH, native_core
from moses_rnn.networks.vocabulary import shortlist
from moses_rnn.table.phrases import words
from moses_rnn.table.table_blocks import PhraseIds, append_scores, chunks_between_sources, parse_blocks

WORDS = 15_000  # of the shortlist
WORKERS = 2  # beside the thread that reads and writes


def stages(blocks: Sequence[bytes], folder: str) -> list[Stage]:
    """Return the stages, in the order in which a line passes them."""
    table, out = f"{folder}/table.gz", f"{folder}/out.gz"
    Path(table).write_bytes(b"".join(pack(block, table) for block in blocks))
    chunks = list(chunks_between_sources(parse_blocks(blocks, "table")))
    targets = [chunk.pairs().targets for chunk in chunks]
    known = shortlist(Counter(word for phrases in targets for phrase in phrases for word in words(phrase)), WORDS)

    def written() -> list[bytes]:
        values = Random.values[:, None]
        return [append_scores(one.text, one.spans, np.exp(values[: len(one)])) for one in chunks]

    def ids() -> object:
        of_phrases = PhraseIds(known.id_of)
        return [of_phrases(phrases) for phrases in targets]

    def cut() -> object:
        return list(chunks_between_sources(parse_blocks(blocks, "table")))

    def whole() -> None:
        score_table(table, out, Random(), WORKERS)

    scored, count = written(), sum(map(len, chunks))
    alone = {
        "read a .gz in blocks": lambda: sum(map(len, read_blocks(table))),
        "parse": lambda: list(parse_blocks(blocks, "table")),
        "cut into chunks, after parsing": cut,
        "target words to ids": ids,
        "add scores": written,
        "compress": lambda: [pack(block, table) for block in scored],
    }
    return [
        *(Stage(name, work, count, time.thread_time) for name, work in alone.items()),
        Stage("all but scoring, all threads together", whole, count, time.process_time),
        Stage(f"the same by the clock, {WORKERS} workers", whole, count),
    ]


def first_blocks(table: str, lines: int) -> list[bytes]:
    """Read the first blocks of a table, with at least `lines` lines."""
    blocks = []
    for block in read_blocks(table):
        blocks.append(block)
        lines -= block.count(b"\n")
        if lines <= 0:
            break
    return blocks


def main() -> None:
    """Print the table of stages."""
    parser = make_parser(__doc__, rounds=5)
    parser.add_argument("--lines", type=int, default=500_000, help="lines to read, in whole blocks")
    given = parser.parse_args()
    ways = {"native": os.environ.get(SWITCH, INSTRUCTION_SETS[-1]), "python": "0"} if native_core() else {"python": "0"}
    best: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        rows = stages(first_blocks(given.table, given.lines), folder)
        for _, row, (way, setting) in itertools.product(range(given.rounds), rows, ways.items()):
            os.environ[SWITCH] = setting
            seconds = best.setdefault(row.name, {})
            seconds[way] = min(seconds.get(way, float("inf")), timed(row))
    count = rows[0].items
    print(f"{count:,} lines; lines per second of one core, best of {given.rounds} rounds")
    print(f"{'':<40}" + "".join(f"{way:>14}" for way in ways) + f"{'×':>8}")
    for name, seconds in best.items():
        rates = "".join(f"{count / taken:>14,.0f}" for taken in seconds.values())
        print(f"{name:<40}{rates}{seconds['python'] / next(iter(seconds.values())):>8.2f}")
    write_json(given, lines=count, stages=best)


if __name__ == "__main__":
    main()
