"""The steps of benchmarks/gpu.py: each yields the rows of a table, whose first column names it."""

from __future__ import annotations

import argparse
import difflib
import importlib.util
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentences import lists_of, pairs_in
from stages import pairs_of, untrained

from moses_rnn.files.streams import read_blocks
from moses_rnn.models.base import Tally
from moses_rnn.models.model import Model
from moses_rnn.native import native_core
from moses_rnn.networks.batches import flatten
from moses_rnn.networks.compute import EAGER, Compute
from moses_rnn.networks.vocabulary import END, UNKNOWN, Vocabulary
from moses_rnn.table.table_blocks import Pairs
from moses_rnn.training.materials import Watch
from moses_rnn.training.presets import NETWORKS
from moses_rnn.training.train import begin, configure, plan_of
from moses_rnn.training.trainer import NOBODY, Trainer

ROOT = Path(__file__).parent.parent
SHIM = "#!{python}\nimport sys\nfrom moses_rnn.cli.{module} import main\nsys.argv[0] = '{name}'\nmain()\n"
PROGRAMS = {"moses-rnn": "main", "moses-rnn-train": "train", "moses-rnn-score": "score"}
Row = dict[str, Any]


def machine(given: argparse.Namespace) -> Iterator[Row]:
    """Describe the machine."""
    yield {"machine": "native core", "found": str(native_core() or "none")}
    yield {
        "machine": "Python, torch, CUDA",
        "found": f"{sys.version.split()[0]}, {torch.__version__}, {torch.version.cuda}",
    }
    yield {"machine": "cores, torch's threads", "found": f"{os.cpu_count()}, {torch.get_num_threads()}"}
    if given.device != "cpu":
        about = torch.cuda.get_device_properties(given.device)
        yield {"machine": "GPU", "found": f"{about.name}, {about.total_memory / 2**30:.0f} GiB"}


def score(given: argparse.Namespace) -> Iterator[Row]:
    """Score a table: the naive loop, each improvement, the whole program; see score.py."""
    lines, rounds = ("600", "1") if given.small else ("131072", "3")
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        words = [given.table, "--preset", given.preset, "--lines", lines, "--rounds", rounds, "--device", given.device]
        command = [sys.executable, ROOT / "benchmarks" / "score.py", *words, "--json", file.name]
        subprocess.run(command, check=True)  # noqa: S603
        found = json.loads(Path(file.name).read_text(encoding="utf-8"))
    rates, bf16 = found["lines_per_second"], found["gemm_gflops"]["bf16"]
    naive = next(iter(rates.values()))
    for name, rate in rates.items():
        share = f"{rate * found['mflop_per_pair'] / 1e3 / bf16:.1%}"
        computes = not name.startswith(("(ids", "(whole"))
        yield {
            "scoring": name,
            "lines/s": rate,
            "× naive": rate / naive,
            "of bf16 product": share if computes else None,
        }
    yield {"scoring": "MFLOP per pair", "lines/s": found["mflop_per_pair"]}
    yield {"scoring": "torch's bf16 product, GFLOP/s", "lines/s": bf16}
    yield {"scoring": "peak memory of the GPU, GiB", "lines/s": found.get("peak_gib")}


def parity(given: argparse.Namespace) -> Iterator[Row]:
    """Compare scores with float64 on the CPU: all networks with all switches, tiny; then some of a preset's sizes."""
    from tests.contract.rows import CASES
    from tests.models.pairs import random_pairs

    some = Pairs.of(random_pairs(200 if given.small else 1000))
    for key, cases in itertools.groupby(CASES, lambda case: case.key):
        few = list(cases)[: 1 if given.small else None]
        yield compared(f"{key}, tiny, variants: {len(few)}", [case.opened() for case in few], some, given.device)
    real = first_pairs(given.table, 100 if given.small else 2000)
    for name in ("encdec", "rnnsearch", "transformer"):
        yield compared(
            f"{name}, {given.preset}, random weights", [of_preset(name, given.preset, real)], real, given.device
        )


def compared(name: str, models: Sequence[Model], pairs: Pairs, device: str) -> Row:
    """Return the mean and largest difference from float64 of each way of computing."""
    ways = {"CPU fp32": ("cpu", "fp32"), "CPU bf16": ("cpu", "bf16")}
    ways |= {f"{device} {kind}": (device, kind) for kind in ("fp32", "fp32 TF32", "bf16")} if device != "cpu" else {}
    exact = [model.make_scorer(Compute(precision="fp64", floors_long=True)).log_probs(pairs) for model in models]
    row: Row = {"Δ log p from float64, mean / largest": name}
    for way, (where, kind) in ways.items():
        torch.set_float32_matmul_precision("high" if kind.endswith("TF32") else "highest")
        compute = Compute(where, kind.split()[0], floors_long=True)
        scores = [model.make_scorer(compute).log_probs(pairs) for model in models]
        off = np.abs(np.concatenate(scores) - np.concatenate(exact))
        row[way] = f"{off.mean():.1e} / {off.max():.1e}"
    torch.set_float32_matmul_precision("highest")
    return row


def of_preset(name: str, preset: str, pairs: Pairs) -> Model:
    """Make a network of a preset's sizes with random weights, large enough to matter, for the words of pairs."""
    kind, config = configure(name, NETWORKS[name].presets[preset].network)
    sides = ([UNKNOWN, END, *dict.fromkeys(b" ".join(side).split())] for side in (pairs.sources, pairs.targets))
    known = dict(zip(("source", "target"), map(Vocabulary, sides), strict=True))
    settings = {name: getattr(config, name) for name in config.settings()}
    network: Any = kind.module(kind.config(*map(len, known.values()), **settings), seed=None)
    network.initialise(1, 0.1)
    return Model(kind, network.eval(), known)


def first_pairs(table: str, count: int) -> Pairs:
    """Return the first pairs of a table."""
    return Pairs.of(list(itertools.islice(pairs_of(read_blocks(table), table), count)))


def train(given: argparse.Namespace) -> Iterator[Row]:
    """Train the paper's network, with minibatches of its 64 pairs and with larger ones."""
    for precision, size in itertools.product(("fp32", "bf16"), (16,) if given.small else (64, 512, 4096)):
        options = {"architecture": "encdec", "phrase_table": given.table, "precision": precision, "batch_size": size}
        yield learned(given, options)[0]


def sentences(given: argparse.Namespace) -> Iterator[Row]:
    """Train networks of sentences, and score lists with them."""
    count, size = (3, 5) if given.small else (100, 100)
    texts = {"prefix": given.texts, "source": given.source, "target": given.target}
    for name in ("rnnsearch", "transformer"):
        row, model, corpus = learned(given, {"architecture": name, **texts})
        yield row
        lists = lists_of(pairs_in(corpus, corpus.held_out[:count]), size, len(corpus.target_vocabulary))
        for precision in ("fp32", "bf16"):
            network = model.make_pair_network(Compute(given.device, precision))
            best = float("inf")
            for _ in range(3):
                started = time.perf_counter()
                for first in range(0, len(lists), 8192):
                    network.log_probs(*map(flatten, zip(*lists[first : first + 8192], strict=True)))
                best = min(best, time.perf_counter() - started)
            yield {"speed": f"lists by {name}, {precision}", "hypotheses/s": len(lists) / best, **memory(given)}


def learned(given: argparse.Namespace, options: Row) -> tuple[Row, Model, Any]:
    """Train for some seconds; return a row, the model and its corpus."""
    options = {"preset": given.preset, "device": given.device, **options}
    plan, material = plan_of(options, Watch(lambda *_: None, lambda: False))
    with tempfile.TemporaryDirectory() as folder:
        corpus = material.build(Path(folder))
        task = begin(plan, material, corpus, NOBODY)
    memory(given)
    trainer = Trainer(task)
    batches = itertools.chain.from_iterable(task.batches(epoch, 0) for epoch in itertools.count())
    for batch in itertools.islice(batches, 3):
        trainer.learn(batch)
    pairs, words = trainer.progress.examples, trainer.progress.tokens
    seconds, losses, started = 0.0, [], time.perf_counter()
    while seconds < (0.2 if given.small else 5.0):
        losses.append(trainer.learn(next(batches)))
        seconds = time.perf_counter() - started  # the loss has been waited for
    pairs, words = trainer.progress.examples - pairs, trainer.progress.tokens - words
    about = f"{options['architecture']}, {plan.training.precision}, {plan.training.batch_size} at once"
    print(f"{about}: {task.describe()}, loss {losses[0]:.3f} to {losses[-1]:.3f}", flush=True)
    rates = {"pairs/s": pairs / seconds, "words/s": words / seconds, "hypotheses/s": None}
    row = {"speed": f"training {about}", **rates, **memory(given)}
    task.model.use_kernel(EAGER)  # a native one cannot be copied
    return row, Model(plan.kind, task.model.cpu(), corpus.vocabularies), corpus


def memory(given: argparse.Namespace) -> Row:
    """Return the GPU's peak memory since the last call."""
    if given.device == "cpu":
        return {"GiB": None}
    peak = torch.cuda.max_memory_allocated(given.device) / 2**30
    torch.cuda.reset_peak_memory_stats(given.device)
    return {"GiB": peak}


def out_of_memory(given: argparse.Namespace) -> Iterator[Row]:
    """Score with less and less memory allowed: the work is split, and scores stay."""
    model, pairs = untrained(given.table, given.preset), first_pairs(given.table, 100 if given.small else 8192)
    scorer = model.make_scorer(Compute(given.device))
    expected = scorer.log_probs(pairs)
    if given.device == "cpu":
        yield {"memory allowed": "all (a cap needs a GPU)", "splits": 0, "largest Δ log p": 0.0}
        return
    kept, peak = torch.cuda.memory_allocated(given.device), torch.cuda.max_memory_allocated(given.device)
    total = torch.cuda.get_device_properties(given.device).total_memory
    for share in (1.2, 0.6, 0.3, 0.15):
        torch.cuda.empty_cache()
        torch.cuda.set_per_process_memory_fraction((kept + share * (peak - kept)) / total, given.device)
        tally = Tally()
        off = float(np.abs(scorer.log_probs(pairs, tally) - expected).max())
        allowed = f"weights and {share:.0%} of {(peak - kept) / 2**20:,.0f} MiB"
        yield {"memory allowed": allowed, "splits": tally.oom_splits, "largest Δ log p": off}


def run_tests(_given: argparse.Namespace) -> Iterator[Row]:
    """Run the tests for GPUs."""
    at_once = ["-n", "4"] if importlib.util.find_spec("xdist") else []
    command = [sys.executable, "-m", "pytest", "-m", "gpu", "tests/gpu", "-q", "-W", "default", *at_once]
    last = ""
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:  # noqa: S603
        for last in running.stdout or ():
            print(last, end="", flush=True)
    yield {"pytest -m gpu": last.strip("= \n"), "exit code": running.returncode}


def golden(given: argparse.Namespace) -> Iterator[Row]:
    """Run the commands of tests/golden, which take a GPU where there is one; compare with what a CPU left."""
    from tests.golden.golden import CHAINS

    chains = ["parts"] if given.small else [*CHAINS]
    with ProcessPoolExecutor(min(len(chains), os.cpu_count() or 1), get_context("spawn")) as pool:
        for done in as_completed(pool.submit(run_golden, chain) for chain in chains):
            yield done.result()


def run_golden(chain: str) -> Row:
    """Run a chain of commands; count those that leave the same, other numbers, or another text."""
    from tests.golden.golden import CHAINS, ENVIRONMENT, HERE, NUMBER, run_chain, settled

    outcomes = {"same": 0, "other numbers": 0, "another text": 0}
    with tempfile.TemporaryDirectory() as programs, tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "here"
        folder.mkdir()
        for program, module in PROGRAMS.items():
            (Path(programs) / program).write_text(SHIM.format(python=sys.executable, module=module, name=program))
            (Path(programs) / program).chmod(0o755)
        os.environ.pop("MOSES_ROOT", None)
        os.environ.update(ENVIRONMENT, PATH=f"{programs}:{ENVIRONMENT['PATH']}")
        for command, result in run_chain(chain, folder):
            expected = (HERE / "expected" / chain / f"{command}.txt").read_text(encoding="utf-8")
            expected, found = without_device(expected), without_device(result.replace(programs, "BIN"))
            found = settled(found, expected)
            texts = [NUMBER.sub("#", text) for text in (found, expected)]
            outcome = "same" if found == expected else "other numbers" if texts[0] == texts[1] else "another text"
            outcomes[outcome] += 1
            differences = difflib.unified_diff(
                expected.splitlines(), found.splitlines(), "CPU", "found", n=0, lineterm=""
            )
            print("\n".join([f"{chain}, {command}: {outcome}", *itertools.islice(differences, 30)]), flush=True)
    return {"golden commands": f"{chain}, {len(CHAINS[chain])}", **outcomes}


def without_device(text: str) -> str:
    """Return what a command leaves without the words that name the device and its precision of training."""
    return text.replace('"device": "cuda"', '"device": "cpu"').replace("bf16", "fp32")


STEPS: dict[str, Callable[[argparse.Namespace], Iterator[Row]]] = {
    "machine": machine,
    "score": score,
    "parity": parity,
    "train": train,
    "sentences": sentences,
    "out-of-memory": out_of_memory,
    "tests": run_tests,
    "golden": golden,
}
