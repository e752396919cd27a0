"""Measures how much faster than a naive loop each improvement makes scoring.

    python benchmarks/score.py PHRASE_TABLE [--model DIR | --preset paper] [--lines N] [--json FILE]

The first line is the naive loop: the authors' method in plain torch (64 pairs at once, sorted over ten batches, nothing
shared, whole softmax, float32). Each further line adds one improvement. The native core has all of them; it runs with
each instruction set of the machine. Because machines are shared, the lines take turns for several rounds, and the best
time counts. Quote the ratios. The last table compares the scores with float64; it is meaningful only with --model.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from stages import (
    Pair,
    Stage,
    make_parser,
    pairs_of,
    print_rates,
    score_table,
    threads_of_each,
    time_in_turn,
    untrained,
    write_json,
)

from moses_rnn.files.outputs import pack
from moses_rnn.files.streams import read_lines
from moses_rnn.models.model import Model
from moses_rnn.models.open import open_model
from moses_rnn.models.phrases import PAIRS
from moses_rnn.native import PRECISIONS, NativeCore, native_core
from moses_rnn.networks.batches import Batch
from moses_rnn.networks.compute import Compute
from moses_rnn.networks.encdec import EncDecConfig, EncDecStepper, NativeEncDec
from moses_rnn.networks.tries import Trie, build_trie, score_trie
from moses_rnn.table.phrases import words
from moses_rnn.table.table_blocks import Pairs, PhraseIds
from moses_rnn.training.presets import PHRASES

GEMM = (4096, 1000, 3000)  # rows × inner × columns of the product that shows what the machine can do


@torch.inference_mode()
def naive(model: Model, pairs: Sequence[Pair]) -> None:
    """Score as the authors did: 64 pairs at once, sorted over ten such batches, nothing shared, whole softmax."""
    sides = model.source_vocabulary, model.target_vocabulary
    of_ids = [[side.ids(words(phrase)) for side, phrase in zip(sides, pair, strict=True)] for pair in pairs]
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
    """Scores with a stepper, with some of the sharing switched off."""

    def __init__(self, model: Model, stepper: EncDecStepper, *, sources: str, targets: bool, workers: int = 1) -> None:
        self._workers = workers
        self._stepper = stepper
        self._read = PhraseIds(model.source_vocabulary.id_of)
        self._written = PhraseIds(model.target_vocabulary.id_of)
        self._sources, self._targets = sources, targets

    def tries(self, pairs: Sequence[Pair]) -> tuple[Trie, Trie, npt.NDArray[np.intp]]:
        """Build tries of sources (shared: "no", "distinct" or "prefixes") and targets; return each source row too."""
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
        return read, build_trie(*ids, source_of if self._targets else of_pair), source_of

    def score(self, pairs: Sequence[Pair]) -> None:
        """Score all pairs."""
        blocks = [pairs[first : first + PAIRS] for first in range(0, len(pairs), PAIRS)]
        with threads_of_each(self._workers), ThreadPoolExecutor(self._workers) as pool:
            list(pool.map(self._score, blocks))

    def _score(self, pairs: Sequence[Pair]) -> None:
        read, written, source_of = self.tries(pairs)
        encoded = self._stepper.encode_trie(read)
        if not self._targets:  # a copy of the encoded source for each pair
            encoded = type(encoded)(*(tensor[torch.from_numpy(source_of)] for tensor in encoded))
        score_trie(self._stepper, encoded, written)


def ladder(model: Model, pairs: list[Pair]) -> tuple[list[Stage], float]:
    """Return the stages, each with one more improvement, and the number of operations of the last one."""
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
        stages.append(Stage(name, lambda lever=lever: lever.score(pairs), len(pairs)))
    stages += native_stages(model, pairs, count)
    parts = [lever.tries(pairs[first : first + PAIRS]) for first in range(0, len(pairs), PAIRS)]
    return stages, sum(flops(model.network.config, read, written) for read, written, _ in parts)


def native_stages(model: Model, pairs: list[Pair], workers: int) -> list[Stage]:
    """Return stages of the native core: each instruction set and precision."""
    core = native_core()
    cores = [NativeCore(core.functions, i) for i in range(core.instructions + 1)] if core else []
    sides = PhraseIds(model.source_vocabulary.id_of), PhraseIds(model.target_vocabulary.id_of)
    blocks = [pairs[first : first + PAIRS] for first in range(0, len(pairs), PAIRS)]

    def scoring(network: NativeEncDec) -> Callable[[], object]:
        def score(block: Sequence[Pair]) -> object:
            phrases = zip(*block, strict=True)
            return network.log_probs(*(side(list(texts)) for side, texts in zip(sides, phrases, strict=True)))

        def work() -> object:
            with ThreadPoolExecutor(workers) as pool:
                return list(pool.map(score, blocks))

        return work

    kinds = [(core, precision) for core in cores for precision in PRECISIONS if core.multiplies(precision)]
    return [
        Stage(f"({core}, {precision})", scoring(NativeEncDec(model.network, core, precision)), len(pairs))
        for core, precision in kinds
    ]


def whole_program(scorers: Mapping[str, object], lines: list[bytes], folder: str) -> list[Stage]:
    """Return stages that read, score and write, one per way of computing."""
    path, count = f"{folder}/given.gz", torch.get_num_threads()
    Path(path).write_bytes(pack(b"".join(lines), path))

    def through(scorer: object) -> Callable[[], None]:
        return lambda: score_table(path, f"{folder}/out.gz", scorer, count)

    return [Stage(f"whole program, {name}", through(scorer), len(lines)) for name, scorer in scorers.items()]


def scorers_of(model: Model) -> dict[str, object]:
    """Make a scorer for each way of computing that this machine has."""
    ways = {f"torch, {kind}": Compute(precision=kind) for kind in PRECISIONS}
    if core := native_core():
        kinds = filter(core.multiplies, PRECISIONS)
        ways |= {f"{core}, {kind}": Compute(precision=kind, native=True) for kind in kinds}
    return {name: model.make_scorer(compute) for name, compute in ways.items()}


def errors(model: Model, scorers: Mapping[str, object], pairs: Sequence[Pair]) -> dict[str, list[float]]:
    """Print how far each scorer is from float64 on the first pairs."""
    few = Pairs.of(pairs[:20_000])
    exact = model.make_scorer(Compute(precision="fp64")).log_probs(few)
    found = {}
    for name, scorer in scorers.items():
        scores = scorer.log_probs(few)
        ranks = [np.argsort(np.argsort(values, kind="stable"), kind="stable") for values in (scores, exact)]
        off = np.abs(scores - exact)
        found[name] = [float(off.mean()), float(off.max()), float(np.corrcoef(*ranks)[0, 1])]
    print(f"{'against float64':<56}{'mean |Δ log p|':>16}{'largest':>10}{'rank correlation':>18}")
    for name, (mean, largest, agreement) in found.items():
        print(f"{name:<56}{mean:>16.2g}{largest:>10.2g}{agreement:>18.6f}")
    return found


def flops(config: EncDecConfig, read: Trie, written: Trie) -> float:
    """Count the floating-point operations of all products over two tries; a multiply-add is two."""
    H, E, M, R = config.hidden_size, config.embedding_size, config.maxout_size, config.output_rank
    K = config.target_vocabulary_size
    sources = sum(len(level.leaves) for level in read.levels)
    states = sources + sum(len(level.alive) for level in written.levels)
    encoder = read.nodes * 3 * H * (H + E) + sources * H * (5 * H + 2 * M)
    decoder = states * (3 * H * (H + E) + 2 * M * (H + E) + M * R + R * K)
    return 2.0 * (encoder + decoder)


def gemm_rate(dtype: torch.dtype) -> float:
    """Return the GFLOP/s of torch's own product."""
    rows, inner, columns = GEMM
    a, b = torch.randn(rows, inner, dtype=dtype), torch.randn(columns, inner, dtype=dtype)
    product = Stage("product", lambda: torch.nn.functional.linear(a, b), rows)
    time_in_turn([product], 12)
    return 2e-9 * inner * columns * product.rate()


def print_peak(scoring: list[Stage], work: float) -> dict[str, object]:
    """Print which share of the machine's own rate the fastest stage reaches."""
    fastest = max(scoring[1:], key=Stage.rate)
    reached = 1e-9 * work / fastest.seconds
    gemm = {"fp32": gemm_rate(torch.float32), "bf16": gemm_rate(torch.bfloat16)}
    print(
        f"{work / fastest.items / 1e6:.1f} MFLOP per pair with all sharing; fastest scoring, "
        f"{fastest.name.strip('()+ ')}: {reached:,.0f} GFLOP/s, {reached / gemm['bf16']:.0%} of torch's bf16 product "
        f"of {' × '.join(map(str, GEMM))} ({gemm['bf16']:,.0f} GFLOP/s; fp32 {gemm['fp32']:,.0f})"
    )
    return {"gflops": reached, "gemm_gflops": gemm}


def main() -> None:
    """Print the tables."""
    parser = make_parser(__doc__)
    parser.add_argument("--model", type=Path, help="a trained model [default: random weights of --preset]")
    parser.add_argument("--preset", choices=PHRASES, default="paper")
    parser.add_argument(
        "--lines", type=int, default=4 * PAIRS, help="number of lines; best if workers can share it evenly"
    )
    parser.add_argument("--skip", type=int, default=0, help="lines of the table to skip first")
    given = parser.parse_args()
    lines = list(itertools.islice(read_lines(given.table), given.skip, given.skip + given.lines))
    pairs = list(pairs_of([b"".join(lines)], given.table))
    model = open_model(given.model) if given.model else untrained(given.table, given.preset)
    network, scorers = model.network.config, scorers_of(model)
    scoring, work = ladder(model, pairs)
    with tempfile.TemporaryDirectory() as folder:
        stages = [*scoring, *whole_program(scorers, lines, folder)]
        time_in_turn(stages, given.rounds)
    print(
        f"{len(lines):,} lines, H {network.hidden_size}, {network.target_vocabulary_size:,} target words, "
        f"{torch.get_num_threads()} threads, torch {torch.__version__}; best of {given.rounds} rounds"
    )
    rates = print_rates("", "lines", stages)
    peak = print_peak(scoring, work)
    write_json(given, lines_per_second=rates, **peak, against_float64=errors(model, scorers, pairs))


if __name__ == "__main__":
    main()
