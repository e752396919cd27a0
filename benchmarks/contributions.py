"""Compares what a CSLM and an RNN gain together with the sum of what each gains (Cho et al. 2014, section 4.2).

    make results SYSTEMS='baseline rnn cslm' CSLM_IN=nbest WORK=work TRAIN=data/train DEV=data/dev TEST=data/test
    python benchmarks/contributions.py work --source en --target fr [--optimiser kbmira] [--seeds '1 2 3']

The pipeline trains both networks and makes n-best lists of the baseline. Here they are features of these lists: each
alone, and both. The rank correlation is the mean over the sentences of the test set. WORK/contributions has the files;
the same command continues.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from pathlib import Path
from statistics import mean

import numpy as np
from trials import figures, read_plan, run_all, runs_of, table

from moses_rnn.analysis.agreement import spearman
from moses_rnn.files.streams import read_lines
from moses_rnn.moses.nbest import parse_nbest

PLAN = Path(__file__).parent / "plans" / "contributions.toml"
FEATURES = "CSLM0", "RNN0"


def correlation(path: Path) -> tuple[float, int]:
    """Return the mean rank correlation of the features within the lists, and the number of lists that have one."""
    lists: dict[int, list[list[float]]] = defaultdict(list)
    for line in parse_nbest(read_lines(str(path)), str(path)):
        lists[line.sentence].append([line.values(name)[0] for name in FEATURES])
    found = [spearman(*np.array(values).T) for values in lists.values()]
    correlations = [value for value in found if value is not None]
    return mean(correlations) if correlations else float("nan"), len(correlations)


def main() -> None:
    """Run the plan, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path, help="folder of the pipeline")
    parser.add_argument("--source", required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--test", default="test", help="name of the test set")
    parser.add_argument("--baseline", default="1", help="seed of the baseline's tuning")
    parser.add_argument("--optimiser", default="mert", choices=("mert", "kbmira"))
    parser.add_argument("--seeds", default="1 2 3", help="of the tunings here")
    given = parser.parse_args()
    work, folder = given.work, given.work / "contributions"
    texts = {
        f"{name}_{side}": work / "corpus" / f"{of}.{getattr(given, side)}"
        for name, of in (("dev", "dev"), ("test", given.test))
        for side in ("source", "target")
    }
    values = {
        "seeds": given.seeds,
        "dev_lists": work / "nbest" / f"baseline.{given.baseline}.dev.gz",
        "test_lists": work / "nbest" / f"baseline.{given.baseline}.{given.test}.gz",
        "weights": work / "tune" / f"baseline.{given.baseline}" / "moses.ini",
        "cslm": work / "cslm" / "model",
        "rnn": work / "rnn" / "model",
        "optimiser": given.optimiser,
        **texts,
    }
    plan = read_plan(PLAN)
    before, trials = runs_of(plan, folder, {name: str(value) for name, value in values.items()})
    if not (run_all([before], 1) and run_all([run for runs in trials.values() for run in runs], 1)):
        sys.exit(1)
    print("\n".join(table(trials, plan["read"])))
    for name, pattern in plan["read"].items():
        baseline, cslm, rnn, both = (mean(figures(runs, pattern)) for runs in trials.values())
        print(f"\n{name}: alone {cslm + rnn - 2 * baseline:+.2f} in sum, together {both - baseline:+.2f}")
    mean_correlation, lists = correlation(folder / "both.test.gz")
    print(f"\nRank correlation of CSLM and RNN within {lists:,} test lists: {mean_correlation:.3f}")


if __name__ == "__main__":
    main()
