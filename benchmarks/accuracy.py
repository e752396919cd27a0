"""How far float32 and bfloat16 scores are from float64 ones, on a trained model.

python benchmarks/accuracy.py PHRASE_TABLE --model DIR [--pairs 20000]
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from moses_rnn.files.streams import read_blocks
from moses_rnn.native import PRECISIONS, native_core
from moses_rnn.networks.hardware import Compute
from moses_rnn.scorers.base import Scores
from moses_rnn.scorers.open import Model, open_model
from moses_rnn.table.table_blocks import TableLines, parse_blocks


def rank_correlation(a: Scores, b: Scores) -> float:
    """Spearman's."""
    ranks = [np.argsort(np.argsort(values[:, 0], kind="stable"), kind="stable") for values in (a, b)]
    return float(np.corrcoef(*ranks)[0, 1])


def ways(model: Model) -> Iterator[Compute]:
    """All ways of computing that this machine has."""
    yield from (Compute(precision=precision) for precision in ("fp32", "bf16"))
    core = native_core()
    if core is not None and model.architecture.native is not None:
        kinds = (kind for kind in PRECISIONS if core.multiplies(kind))
        yield from (Compute(precision=kind, native=True) for kind in kinds)


def main() -> None:
    """Print the table of differences."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("table")
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--pairs", type=int, default=20_000)
    given = parser.parse_args()
    blocks = parse_blocks(read_blocks(given.table), given.table)
    everything = TableLines.joined(list(blocks))
    first = random.Random(1).randrange(max(len(everything) - given.pairs, 1))  # noqa: S311, no secret
    block = everything[first : first + given.pairs]  # neighbours, as scoring meets them
    pairs = block.pairs()
    model = open_model(given.model)
    exact = model.make_scorer(Compute(precision="fp64")).log_probs(pairs)
    print(f"{len(block):,} pairs, log p from {exact.min():.1f} to {exact.max():.2g}, mean {exact.mean():.2f}")
    print(f"{'against float64':<28}{'mean |Δ log p|':>16}{'largest':>12}{'rank correlation':>20}")
    for way in ways(model):
        scores = model.make_scorer(way).log_probs(pairs)
        off, how = np.abs(scores - exact), ", native core" * way.native
        print(f"{way.precision + how:<28}{off.mean():>16.2g}{off.max():>12.2g}{rank_correlation(scores, exact):>20.6f}")
    apart = model.make_scorer()
    unshared = np.concatenate([apart.log_probs(block[i : i + 1].pairs()) for i in range(1000)])
    shared = apart.log_probs(pairs)[:1000]
    print(f"fp32, 1 000 pairs scored alone against together: largest |Δ log p| {np.abs(unshared - shared).max():.2g}")


if __name__ == "__main__":
    main()
