"""Measures how much faster than a naive loop each improvement makes scoring.

    python benchmarks/score.py PHRASE_TABLE [--model DIR | --preset paper] [--device cuda] [--lines N] [--json FILE]

The first line is the naive loop: the authors' method in plain torch (64 pairs at once, sorted over ten batches, nothing
shared, whole softmax, float32). Each further line adds one improvement. The native core has all of them; it runs with
each instruction set of the machine. Because machines are shared, the lines take turns for several rounds, and the best
time counts. Quote the ratios. The last table compares the scores with float64; it is meaningful only with --model.

With --device cuda, the naive loop and all improvements run there. Two lines need no GPU: building tries in one thread,
and the whole program without scoring. They show what the CPU allows.
"""

from __future__ import annotations

import copy
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
    Random,
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
from moses_rnn.networks.compute import Compute, choose_device
from moses_rnn.networks.encdec import EncDec, EncDecConfig, EncDecStepper, NativeEncDec
from moses_rnn.networks.tries import Trie, build_trie, score_trie
from moses_rnn.score.workers import WORKERS_OF_A_GPU
from moses_rnn.table.phrases import words
from moses_rnn.table.table_blocks import Pairs, PhraseIds
from moses_rnn.training.presets import PHRASES

# Rows × inner × columns of the product that shows what the machine can do
GEMM = {"cpu": (4096, 1000, 3000), "cuda": (8192, 8192, 8192)}
ROUNDS = 6  # of products
PRODUCTS = {"cpu": 1, "cuda": 20}  # timed together


@torch.inference_mode()
def naive(model: Model, network: EncDec, pairs: Sequence[Pair]) -> None:
    """Score as the authors did: 64 pairs at once, sorted over ten such batches, nothing shared, whole softmax.

    `network` is the model's, on the device.
    """
    device = network.decoder.b_G.device
    sides = model.source_vocabulary, model.target_vocabulary
    of_ids = [[side.ids(words(phrase)) for side, phrase in zip(sides, pair, strict=True)] for pair in pairs]
    for first in range(0, len(of_ids), 640):
        group = sorted(of_ids[first : first + 640], key=lambda pair: -max(map(len, pair)))
        for start in range(0, len(group), 64):
            batch = sorted(group[start : start + 64], key=lambda pair: -len(pair[1]))
            order = sorted(range(len(batch)), key=lambda i: -len(batch[i][0]))
            source_of = torch.empty(len(batch), dtype=torch.long)
            source_of[torch.tensor(order)] = torch.arange(len(batch))
            sources = Batch.from_lists([batch[i][0] for i in order], device)
            targets = Batch.from_lists([target for _, target in batch], device)
            network.word_log_probs(sources, targets, source_of.to(device)).cpu()


class Levers:
    """Scores with a stepper, with some of the sharing switched off."""

    def __init__(
        self,
        model: Model,
        stepper: EncDecStepper,
        sources: str,
        *,
        targets: bool,
        workers: int = 1,
        at_once: int = PAIRS,
    ) -> None:
        self._workers, self._at_once = workers, at_once
        self.stepper = stepper
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
        blocks = [pairs[first : first + self._at_once] for first in range(0, len(pairs), self._at_once)]
        with threads_of_each(self._workers), ThreadPoolExecutor(self._workers) as pool:
            list(pool.map(self._score, blocks))

    def _score(self, pairs: Sequence[Pair]) -> None:
        read, written, source_of = self.tries(pairs)
        encoded = self.stepper.encode_trie(read)
        if not self._targets:  # a copy of the encoded source for each pair
            rows = torch.from_numpy(source_of).to(self.stepper.device)
            encoded = type(encoded)(*(tensor[rows] for tensor in encoded))
        score_trie(self.stepper, encoded, written)


def ladder(model: Model, pairs: list[Pair], device: str) -> tuple[list[Stage], float]:
    """Return the stages, each with one more improvement, and the number of operations of the last one."""
    few = pairs[:: max(len(pairs) // 2560, 1)][:2560]  # the reference is slow
    network = copy.deepcopy(model.network).to(device)
    plain = EncDecStepper(model.network, device)
    rough = EncDecStepper(model.network, device, torch.bfloat16)
    count = workers_of(device)
    steps = [
        ("fp32, by trie level, nothing shared", plain, "no", False, 1),
        ("+ each distinct source once", plain, "distinct", False, 1),
        ("+ source prefixes shared", plain, "prefixes", False, 1),
        ("+ target prefixes shared", plain, "prefixes", True, 1),
        ("+ a worker for each core" if device == "cpu" else f"+ {count} workers", plain, "prefixes", True, count),
        ("+ bf16 products", rough, "prefixes", True, count),
    ]
    stages = [Stage("naive: 64 pairs at once, nothing shared, fp32", lambda: naive(model, network, few), len(few))]
    for name, stepper, sources, targets, workers in steps:
        lever = Levers(model, stepper, sources, targets=targets, workers=workers)
        lever.score(pairs[:300])  # warms up
        stages.append(Stage(name, lambda lever=lever: lever.score(pairs), len(pairs)))
    parts = [lever.tries(pairs[first : first + PAIRS]) for first in range(0, len(pairs), PAIRS)]
    if device == "cpu":
        stages += native_stages(model, pairs, count)
    else:
        alone = [(read, written) for read, written, _ in parts]
        stages.append(Stage("(the device alone: tries built before)", lambda: score_tries(rough, alone), len(pairs)))
    return stages, sum(flops(model.network.config, read, written) for read, written, _ in parts)


def score_tries(stepper: EncDecStepper, tries: list[tuple[Trie, Trie]]) -> None:
    """Score tries of sources and targets."""
    for read, written in tries:
        score_trie(stepper, stepper.encode_trie(read), written)


def workers_of(device: str) -> int:
    """Return how many workers score on a device."""
    return torch.get_num_threads() if device == "cpu" else WORKERS_OF_A_GPU


def further_stages(model: Model, pairs: list[Pair], device: str) -> list[Stage]:
    """Return stages with more pairs at once on a GPU, and of the work that stays on the CPU."""
    lever = Levers(model, EncDecStepper(model.network, device, torch.bfloat16), "prefixes", targets=True)
    blocks = [pairs[first : first + PAIRS] for first in range(0, len(pairs), PAIRS)]
    stages = [Stage("(ids and tries alone, one thread)", lambda: list(map(lever.tries, blocks)), len(pairs))]
    for at_once in (4 * PAIRS, 16 * PAIRS) if device != "cpu" else ():
        lever = Levers(model, lever.stepper, "prefixes", targets=True, workers=workers_of(device), at_once=at_once)
        name = f"bf16, {at_once:,} pairs at once"
        stages.append(Stage(name, lambda lever=lever: lever.score(pairs), len(pairs)))
    return stages


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


def whole_program(scorers: Mapping[str, object], lines: list[bytes], folder: str, workers: int) -> list[Stage]:
    """Return stages that read, score and write, one per way of computing, and one that computes nothing."""
    path = f"{folder}/given.gz"
    Path(path).write_bytes(pack(b"".join(lines), path))

    def through(scorer: object, count: int) -> Callable[[], None]:
        return lambda: score_table(path, f"{folder}/out.gz", scorer, count)

    programs = [
        Stage(f"whole program, {name}", through(scorer, workers), len(lines)) for name, scorer in scorers.items()
    ]
    return [*programs, Stage("(whole program without scores, one worker)", through(Random(), 1), len(lines))]


def scorers_of(model: Model, device: str) -> dict[str, object]:
    """Make a scorer for each way of computing that this machine has."""
    ways = {f"torch, {kind}": Compute(device, kind) for kind in PRECISIONS}
    if device == "cpu" and (core := native_core()):
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


def gemm_rate(dtype: torch.dtype, device: str) -> float:
    """Return the GFLOP/s of torch's own product."""
    kind = device.partition(":")[0]
    rows, inner, columns = GEMM[kind]
    a, b = (torch.randn(count, inner, dtype=dtype, device=device) for count in (rows, columns))

    def multiply() -> None:
        products = [torch.nn.functional.linear(a, b)[0, 0] for _ in range(PRODUCTS[kind])]
        torch.stack(products).cpu()  # waits for a device

    product = Stage("product", multiply, PRODUCTS[kind])
    time_in_turn([product], ROUNDS)
    return 2e-9 * rows * inner * columns * product.rate()


def print_peak(scoring: list[Stage], work: float, device: str) -> dict[str, object]:
    """Print which share of the machine's own rate the fastest stage reaches."""
    fastest = max(scoring[1:], key=Stage.rate)
    reached = 1e-9 * work / fastest.seconds
    gemm = {"fp32": gemm_rate(torch.float32, device), "bf16": gemm_rate(torch.bfloat16, device)}
    print(
        f"{work / fastest.items / 1e6:.1f} MFLOP per pair with all sharing; fastest scoring, "
        f"{fastest.name.strip('()+ ')}: {reached:,.0f} GFLOP/s, {reached / gemm['bf16']:.0%} of torch's bf16 product "
        f"of {' × '.join(map(str, GEMM[device.partition(':')[0]]))} ({gemm['bf16']:,.0f} GFLOP/s; "
        f"fp32 {gemm['fp32']:,.0f})"
    )
    return {"gflops": reached, "gemm_gflops": gemm, "mflop_per_pair": work / fastest.items / 1e6}


def print_memory(device: str) -> dict[str, object]:
    """Print the peak memory of a GPU."""
    if device == "cpu":
        return {}
    gib = torch.cuda.max_memory_allocated(device) / 2**30
    print(f"{torch.cuda.get_device_name(device)}: at most {gib:.2f} GiB of its memory in use")
    return {"peak_gib": gib}


def main() -> None:
    """Print the tables."""
    parser = make_parser(__doc__)
    parser.add_argument("--model", type=Path, help="a trained model [default: random weights of --preset]")
    parser.add_argument("--preset", choices=PHRASES, default="paper")
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1 …")
    parser.add_argument(
        "--lines", type=int, default=4 * PAIRS, help="number of lines; best if workers can share it evenly"
    )
    parser.add_argument("--skip", type=int, default=0, help="lines of the table to skip first")
    given = parser.parse_args()
    device = choose_device(given.device, "--device")
    lines = list(itertools.islice(read_lines(given.table), given.skip, given.skip + given.lines))
    pairs = list(pairs_of([b"".join(lines)], given.table))
    model = open_model(given.model) if given.model else untrained(given.table, given.preset)
    network, scorers = model.network.config, scorers_of(model, device)
    scoring, work = ladder(model, pairs, device)
    with tempfile.TemporaryDirectory() as folder:
        programs = whole_program(scorers, lines, folder, workers_of(device))
        stages = [*scoring, *further_stages(model, pairs, device), *programs]
        time_in_turn(stages, given.rounds)
    print(
        f"{len(lines):,} lines, H {network.hidden_size}, {network.target_vocabulary_size:,} target words, "
        f"{torch.get_num_threads()} threads, torch {torch.__version__}; best of {given.rounds} rounds"
    )
    rates = print_rates("", "lines", stages)
    figures = {**print_peak(scoring, work, device), **print_memory(device)}
    write_json(given, lines_per_second=rates, **figures, against_float64=errors(model, scorers, pairs))


if __name__ == "__main__":
    main()
