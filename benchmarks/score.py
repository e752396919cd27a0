"""Scoring, lever by lever, as ratios taken in one run.

    python benchmarks/score.py PHRASE_TABLE [--model DIR | --preset paper] [--lines N] [--json FILE]

The first line is a naive reference: the authors' arrangement in plain torch (64 pairs at once, sorted over ten batches,
nothing shared, the whole softmax, float32). Each further line switches one lever on; the native core's have all levers,
for each instruction set up to the machine's best. Every line is timed several times, in turn with the others, and the
best time counts: machines are shared. Quote the ratios.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from stages import GEMM, Pair, Stage, gemm_rate, pairs_of, threads_of_each, time_in_turn

from moses_rnn.files.outputs import DEFAULT_LEVEL, Packing, ResumableOutputs
from moses_rnn.files.streams import read_blocks, read_lines
from moses_rnn.native import PRECISIONS, NativeCore, native_core
from moses_rnn.networks.batches import Batch
from moses_rnn.networks.encdec import ENCDEC, EncDec, EncDecConfig, EncDecStepper, NativeEncDec
from moses_rnn.networks.hardware import Compute
from moses_rnn.networks.trie_scoring import score_trie
from moses_rnn.networks.tries import Trie, build_trie
from moses_rnn.networks.vocabulary import Vocabulary
from moses_rnn.score.reading import CHUNK_LINES, chunks_between_sources
from moses_rnn.score.workers import ChunkScorer, Threads, map_in_order
from moses_rnn.scorers.base import Scores, Tally
from moses_rnn.scorers.open import Model, open_model
from moses_rnn.scorers.phrases import PAIRS
from moses_rnn.table.phrase_forms import words
from moses_rnn.table.phrase_table import DEFAULT_FLOOR
from moses_rnn.table.table_blocks import Pairs, PhraseIds, parse_blocks
from moses_rnn.training.corpus import CorpusConfig, build_corpus
from moses_rnn.training.networks import PHRASES


def untrained(table: Iterable[Pair], preset: str) -> Model:
    """A network of a preset's sizes with random weights and the table's own shortlists."""
    sizes = PHRASES[preset]
    with tempfile.TemporaryDirectory() as folder:
        shortlists = CorpusConfig(sizes.shortlist, sizes.shortlist)
        corpus = build_corpus(table, Path(folder), shortlists)
    source, target = corpus.source_vocabulary, corpus.target_vocabulary
    network = EncDec(EncDecConfig(len(source), len(target), **sizes.network), seed=1).eval()
    return Model(ENCDEC, network, {"source": source, "target": target})


@torch.inference_mode()
def naive(model: Model, pairs: Sequence[Pair]) -> None:
    """Score as the authors did: 64 pairs at once, sorted over ten such batches, nothing shared, whole softmax."""

    def ids(vocabulary: Vocabulary, phrase: bytes) -> list[int]:
        return vocabulary.ids(words(phrase))

    of_ids = [(ids(model.source_vocabulary, s), ids(model.target_vocabulary, t)) for s, t in pairs]
    for first in range(0, len(of_ids), 640):
        group = sorted(of_ids[first : first + 640], key=lambda pair: -max(map(len, pair)))
        for start in range(0, len(group), 64):
            batch = sorted(group[start : start + 64], key=lambda pair: -len(pair[1]))
            order = sorted(range(len(batch)), key=lambda i: -len(batch[i][0]))
            source_of = torch.empty(len(batch), dtype=torch.long)
            source_of[torch.tensor(order)] = torch.arange(len(batch))
            sources = Batch.from_lists([batch[i][0] for i in order])
            model.network.word_log_probs(sources, Batch.from_lists([target for _, target in batch]), source_of)


class Levers:
    """The stepper with sharing switched off in parts."""

    def __init__(self, model: Model, stepper: EncDecStepper, *, sources: str, targets: bool, workers: int = 1) -> None:
        self._workers = workers
        self._stepper = stepper
        self._read = PhraseIds(model.source_vocabulary.id_of())
        self._written = PhraseIds(model.target_vocabulary.id_of())
        self._sources, self._targets = sources, targets

    def tries(self, pairs: Sequence[Pair]) -> tuple[Trie, Trie]:
        """Of sources: each on its own ("no"), distinct ones, or their prefixes shared; of targets likewise."""
        of_pair = np.arange(len(pairs))
        spelled = list(dict.fromkeys(source for source, _ in pairs))
        number = {source: i for i, source in enumerate(spelled)}
        if self._sources == "no":
            read = build_trie(*self._read([source for source, _ in pairs]), of_pair)
            source_of = read.leaf_of
        else:
            own_root = np.arange(len(spelled)) if self._sources == "distinct" else None
            read = build_trie(*self._read(spelled), own_root)
            source_of = read.leaf_of[[number[source] for source, _ in pairs]]
        ids = self._written([target for _, target in pairs])
        if self._targets:
            return read, build_trie(*ids, source_of)
        self.source_of = source_of
        return read, build_trie(*ids, of_pair)

    def score(self, pairs: Sequence[Pair]) -> Scores:
        """Score all pairs."""
        blocks = [pairs[first : first + PAIRS] for first in range(0, len(pairs), PAIRS)]
        with threads_of_each(self._workers), ThreadPoolExecutor(self._workers) as pool:
            return np.concatenate(list(pool.map(self._score, blocks)))[:, None]

    def _score(self, pairs: Sequence[Pair]) -> npt.NDArray[np.float64]:
        read, written = self.tries(pairs)
        terms = self._stepper.encode(read)
        if not self._targets:  # each pair's terms for itself
            terms = type(terms)(*(tensor[torch.from_numpy(self.source_of)] for tensor in terms))
        return score_trie(self._stepper, terms, written)[written.leaf_of]


def flops(config: EncDecConfig, read: Trie, written: Trie) -> float:
    """Floating-point operations of all products over two tries; a multiply-add is two."""
    H, E, M, R = config.hidden_size, config.embedding_size, config.maxout_size, config.output_rank
    K = config.target_vocabulary_size
    sources = sum(len(level.leaves) for level in read.levels)
    states = sources + sum(len(level.alive) for level in written.levels)
    encoder = read.nodes * 3 * H * (H + E) + sources * H * (5 * H + 2 * M)
    decoder = states * (3 * H * (H + E) + 2 * M * (H + E) + M * R + R * K)
    return 2.0 * (encoder + decoder)


class Random:
    """A scorer that costs next to nothing: what is left is reading, parsing, formatting, compressing and writing."""

    name, num_scores, meaning = "Random", 1, "nothing"
    unbounded = False

    def __init__(self) -> None:
        self._values = np.random.default_rng(1).uniform(-30.0, 0.0, (2 * CHUNK_LINES, 1))

    def log_probs(self, pairs: Pairs, _tally: Tally | None = None) -> Scores:
        """Something else for every pair, as digits that compress no better than real ones."""
        return self._values[: len(pairs)]


def whole(table: str, path: str, scorer: object, level: int = DEFAULT_LEVEL) -> None:
    """Read, score and write as moses-rnn-score does."""
    count = torch.get_num_threads()
    with ResumableOutputs([path]) as output, threads_of_each(count):
        output.begin({})
        lines = parse_blocks(read_blocks(table), table)
        scorer = ChunkScorer([scorer], table, DEFAULT_FLOOR, Packing(gzip=True, level=level))  # type: ignore[list-item]
        with Threads([scorer] * count) as workers:
            for _, scored in map_in_order(chunks_between_sources(lines), workers):
                output.append(path, scored.block)
                output.save({})
        output.commit()
    Path(path).unlink()


def arguments() -> argparse.Namespace:
    """What the user wants."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("table")
    parser.add_argument("--model", type=Path, help="a trained model [default: random weights of --preset]")
    parser.add_argument("--preset", choices=PHRASES, default="paper")
    parser.add_argument("--lines", type=int, default=4 * PAIRS, help="so many that workers share them evenly")
    parser.add_argument("--skip", type=int, default=0, help="lines of the table to skip first")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def main() -> None:
    """Print the table of levers."""
    given = arguments()

    def lines() -> Iterator[bytes]:
        return itertools.islice(read_lines(given.table), given.skip, given.skip + given.lines)

    pairs = list(pairs_of([b"".join(lines())], given.table))
    everything = pairs_of(read_blocks(given.table), given.table)
    model = open_model(given.model) if given.model else untrained(everything, given.preset)
    with tempfile.TemporaryDirectory() as folder:
        stages, work = ladder(model, pairs, given)
        stages += whole_program(model, lines, given, folder)
        time_in_turn(stages, given.rounds)
    report(stages, model, work, given)


def ladder(model: Model, pairs: list[Pair], given: argparse.Namespace) -> tuple[list[Stage], float]:
    """The levers, each added to those above it; and the operations of the last of them."""
    few = pairs[:: max(len(pairs) // 2560, 1)][:2560]  # the reference is slow
    plain = EncDecStepper(model.network)
    rough = EncDecStepper(model.network, dtype=torch.bfloat16)
    count = torch.get_num_threads()
    steps = [
        ("fp32, by trie level, nothing shared", plain, "no", False, 1),
        ("+ each distinct source once", plain, "distinct", False, 1),
        ("+ source prefixes shared", plain, "prefixes", False, 1),
        ("+ target prefixes shared", plain, "prefixes", True, 1),
        ("+ a worker for each core", plain, "prefixes", True, count),
        ("+ bf16 products", rough, "prefixes", True, count),
    ]
    stages = [Stage("naive: 64 pairs at once, nothing shared, fp32", lambda: naive(model, few), len(few))]
    for name, stepper, sources, targets, workers in steps:
        lever = Levers(model, stepper, sources=sources, targets=targets, workers=workers)
        lever.score(pairs[:300])  # warms up
        stages.append(Stage(name, lambda lever=lever: lever.score(pairs), len(pairs)))  # type: ignore[misc]
    stages += native_stages(model, pairs, count)
    parts = [lever.tries(pairs[first : first + PAIRS]) for first in range(0, len(pairs), PAIRS)]
    return stages, sum(flops(model.network.config, *tries) for tries in parts)


def native_stages(model: Model, pairs: list[Pair], workers: int) -> list[Stage]:
    """The native core's ways of scoring the pairs, in as many threads."""
    core = native_core()
    cores = [NativeCore(core.functions, i) for i in range(core.instructions + 1)] if core else []
    sides = PhraseIds(model.source_vocabulary.id_of()), PhraseIds(model.target_vocabulary.id_of())
    blocks = [pairs[first : first + PAIRS] for first in range(0, len(pairs), PAIRS)]

    def scoring(network: NativeEncDec) -> Callable[[], object]:
        def score(block: Sequence[Pair]) -> object:
            sources, targets = (
                side(list(phrases)) for side, phrases in zip(sides, zip(*block, strict=True), strict=True)
            )
            return network.log_probs(sources, targets)

        def work() -> object:
            with ThreadPoolExecutor(workers) as pool:
                return list(pool.map(score, blocks))

        return work

    kinds = [(core, precision) for core in cores for precision in PRECISIONS if core.multiplies(precision)]
    return [
        Stage(f"({core}, {precision})", scoring(NativeEncDec(model.network, core, precision)), len(pairs))
        for core, precision in kinds
    ]


def whole_program(
    model: Model, lines: Callable[[], Iterator[bytes]], given: argparse.Namespace, folder: str
) -> list[Stage]:
    """Read, score and write; and the floors of that."""
    path = f"{folder}/out.gz"
    count = sum(1 for _ in read_lines(given.table))
    (Path(folder) / "given").write_bytes(b"".join(lines()))
    subprocess.run(["gzip", "-1k", f"{folder}/given"], check=True)  # noqa: S603

    def through(scorer: object, table: str = f"{folder}/given.gz", level: int = DEFAULT_LEVEL) -> Callable[[], None]:
        return lambda: whole(table, path, scorer, level)

    def reading_and_writing(level: int) -> Stage:
        name = f"all but scoring, a second of one core, level {level}"
        return Stage(name, through(Random(), given.table, level), count, time.process_time)

    def shell(command: str) -> Callable[[], object]:
        return lambda: subprocess.run(command, shell=True, check=True, stdout=subprocess.DEVNULL)  # noqa: S602

    ways = {f"torch, {kind}": Compute(precision=kind) for kind in ("fp32", "bf16")}
    for kind in PRECISIONS:
        if (core := native_core()) and core.multiplies(kind):
            ways[f"{core}, {kind}"] = Compute(precision=kind, native=True)
    return [
        *(
            Stage(f"whole program, {name}", through(model.make_scorer(compute)), given.lines)
            for name, compute in ways.items()
        ),
        reading_and_writing(DEFAULT_LEVEL),
        reading_and_writing(1),
        Stage("floor: zcat | wc -l", shell(f"zcat {folder}/given.gz | wc -l"), given.lines),
        Stage("floor: gzip -1", shell(f"gzip -1 < {folder}/given"), given.lines),
    ]


def report(stages: list[Stage], model: Model, work: float, given: argparse.Namespace) -> None:
    """Print, and write the same as JSON."""
    network = model.network.config
    print(
        f"{given.lines:,} lines, H {network.hidden_size}, {network.target_vocabulary_size:,} target words, "
        f"{torch.get_num_threads()} threads, torch {torch.__version__}; best of {given.rounds} rounds"
    )
    print(f"{'':<56}{'lines/s':>10}{'× naive':>10}{'× above':>10}")
    above = stages[0]
    for stage in stages:
        factors = f"{stage.rate() / stages[0].rate():>10.2f}{stage.rate() / above.rate():>10.2f}"
        print(f"{stage.name:<56}{stage.rate():>10,.0f}{factors}")
        if not stage.name.startswith("("):
            above = stage
    scoring = [stage for stage in stages if stage.items == given.lines and "program" not in stage.name]
    fastest = max((stage for stage in scoring if "floor" not in stage.name), key=Stage.rate)
    rates = {"fp32": gemm_rate(torch.float32), "bf16": gemm_rate(torch.bfloat16)}
    reached = 1e-9 * work / fastest.seconds
    print(
        f"{work / given.lines / 1e6:.1f} MFLOP a pair with all sharing; fastest scoring, {fastest.name.strip('()+ ')}: "
        f"{reached:,.0f} GFLOP/s, "
        f"{reached / rates['bf16']:.0%} of torch's bf16 product of {' × '.join(map(str, GEMM))} "
        f"({rates['bf16']:,.0f} GFLOP/s; fp32 {rates['fp32']:,.0f})"
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory of this process: {peak:,.0f} MiB")
    if given.json:
        record = {stage.name: {"lines_per_second": stage.rate(), "seconds": stage.seconds} for stage in stages}
        figures = {"command": sys.argv, "stages": record, "gflops": reached, "gemm_gflops": rates, "peak_mib": peak}
        given.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
