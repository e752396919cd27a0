"""Stages of scoring a table, as ratios taken in one run.

    python benchmarks/score.py PHRASE_TABLE [--model DIR] [--lines N]

Compares the scorer with a naive reference (batches of 64 pairs sorted over ten, no sharing, whole softmax) and with the
floors of reading and writing. Machines differ and are shared: quote the ratios.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from moses_rnn.formats.journal import BlockOutput
from moses_rnn.formats.outputs import OutputFile
from moses_rnn.formats.phrase_table import TableLine, parse_table, words
from moses_rnn.formats.streams import read_lines
from moses_rnn.models.batches import Batch
from moses_rnn.models.checkpoint import Checkpoint, load_checkpoint
from moses_rnn.models.encdec import EncDec, EncDecConfig
from moses_rnn.models.vocabulary import Vocabulary
from moses_rnn.scoring.phrase_tables import ColumnOptions, ScoringReport, scored_table
from moses_rnn.scoring.producers import EncDecProducer
from moses_rnn.training.config import PRESETS
from moses_rnn.training.corpus import CorpusConfig, build_corpus


def untrained(table: list[TableLine], preset: str) -> Checkpoint:
    """A network of a preset's sizes with random weights and the table's own shortlists."""
    sizes = PRESETS[preset]
    with tempfile.TemporaryDirectory() as folder:
        shortlists = CorpusConfig(sizes.shortlist, sizes.shortlist)
        corpus = build_corpus([(line.source, line.target) for line in table], Path(folder), shortlists)
    source, target = corpus.source_vocabulary, corpus.target_vocabulary
    shape = (sizes.hidden_size, sizes.embedding_size, sizes.maxout_size, sizes.output_rank)
    return Checkpoint(EncDec(EncDecConfig(len(source), len(target), *shape), seed=1).eval(), source, target)


@torch.inference_mode()
def naive(checkpoint: Checkpoint, table: list[TableLine]) -> None:
    """Score as the authors did: 64 pairs at once, sorted over ten such batches, nothing shared, whole softmax."""

    def ids(vocabulary: Vocabulary, phrase: bytes) -> list[int]:
        return vocabulary.ids(words(phrase))

    pairs = [(ids(checkpoint.source_vocabulary, x.source), ids(checkpoint.target_vocabulary, x.target)) for x in table]
    for first in range(0, len(pairs), 640):
        group = sorted(pairs[first : first + 640], key=lambda pair: -max(map(len, pair)))
        for start in range(0, len(group), 64):
            batch = sorted(group[start : start + 64], key=lambda pair: -len(pair[1]))
            order = sorted(range(len(batch)), key=lambda i: -len(batch[i][0]))
            source_of = torch.empty(len(batch), dtype=torch.long)
            source_of[torch.tensor(order)] = torch.arange(len(batch))
            sources = Batch.from_lists([batch[i][0] for i in order])
            checkpoint.model.word_log_probs(sources, Batch.from_lists([target for _, target in batch]), source_of)


def timed(work: Callable[[], object]) -> float:
    """Seconds of wall-clock time."""
    started = time.monotonic()
    work()
    return time.monotonic() - started


def main() -> None:
    """Print the table of stages."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("table")
    parser.add_argument("--model", type=Path, help="a trained model [default: random weights of --preset]")
    parser.add_argument("--preset", choices=PRESETS, default="small")
    parser.add_argument("--lines", type=int, default=20_000)
    arguments = parser.parse_args()

    def lines() -> list[bytes]:
        return list(itertools.islice(read_lines(arguments.table), arguments.lines))

    data = lines()
    table = list(parse_table(data, arguments.table))
    checkpoint = load_checkpoint(arguments.model) if arguments.model else untrained(table, arguments.preset)
    producer = EncDecProducer(checkpoint)

    def whole(path: str) -> None:
        with BlockOutput(path) as output:
            output.begin({})
            parsed = parse_table(lines(), arguments.table)
            for block in scored_table(parsed, [[producer]], ColumnOptions(), ScoringReport(), arguments.table):
                output.append(block, {})
            output.commit()

    def write(path: str) -> None:
        with OutputFile(path) as output:
            output.commit(b"".join(data))

    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/table.gz"
        write(path + ".given.gz")
        stages = {
            "naive: 64 pairs at once, nothing shared": timed(lambda: naive(checkpoint, table)),
            "moses-rnn-score: read, score, write": timed(lambda: whole(path)),
            "  scoring alone": timed(lambda: producer.log_probs([(line.source, line.target) for line in table])),
            "  reading alone": timed(lines),
            "  parsing alone": timed(lambda: list(parse_table(data, "bench"))),
            "  compressing and writing alone": timed(lambda: write(path + ".copy.gz")),
            "floor: zcat | wc -l": timed(lambda: subprocess.run(f"zcat {path}.given.gz | wc -l", shell=True, check=True, stdout=subprocess.DEVNULL)),  # noqa: S602, E501
        }  # fmt: skip
    naive_seconds = next(iter(stages.values()))
    network = checkpoint.model.config
    print(f"{len(data):,} lines, H {network.hidden_size}, {network.target_vocabulary_size:,} target words, ", end="")
    print(f"{torch.get_num_threads()} threads, torch {torch.__version__}")
    print(f"{'stage':<42}{'lines/s':>12}{'× naive':>10}")
    for name, seconds in stages.items():
        print(f"{name:<42}{len(data) / seconds:>12,.0f}{naive_seconds / seconds:>10.2f}")
    print(f"peak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB")


if __name__ == "__main__":
    main()
