"""Cells of the phrase model against each other: held-out nats after equal time, of equal width and of equal size.

    python benchmarks/cells.py PHRASE_TABLE FOLDER [--minutes 1] [--seeds 1 2 3] [--at-once 2] [--cells tanh lstm]

The first table has the preset's width for every cell; in the second each has as many hidden units as bring its
parameters nearest to those of the paper's network. All else is equal: embeddings, maxout units, output rank,
shortlists, minibatches, held-out pairs. Each network learns in one thread, and its minutes are those of the processor,
so that what else the machine does hardly matters. Trials stay in FOLDER and are not run twice.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from sweep import history_of, run_trial

from moses_rnn.models.cells import CellConfig, CellEncDec
from moses_rnn.models.folders import CONFIG

PAPER = "gru"
CELLS: dict[str, dict[str, Any]] = {
    PAPER: {},
    "gru, encoder's reset after": {"encoder_reset": "after"},
    "gru, decoder's reset before": {"decoder_reset": "before"},
    "tanh": {"cell": "tanh"},
    "relu": {"cell": "relu"},
    "leaky, 25 %": {"cell": "leaky", "leaky_share": 0.25},
    "leaky, 50 %": {"cell": "leaky", "leaky_share": 0.5},
    "lstm": {"cell": "lstm"},
    "lstm-peephole": {"cell": "lstm-peephole"},
}


@dataclass(frozen=True)
class Trial:
    """A cell with a width and a seed."""

    cell: str
    seed: int
    hidden_size: int | None  # None: the preset's

    @property
    def name(self) -> str:
        """Of its folder."""
        words = "".join(letter if letter.isalnum() else "-" for letter in self.cell)
        return f"{words}-{self.hidden_size or 'preset'}-{self.seed}"

    def options(self, given: argparse.Namespace) -> dict[str, Any]:
        """Of moses-rnn-train."""
        width = {"hidden_size": self.hidden_size} if self.hidden_size else {}
        return {"preset": "small", "max_minutes": given.minutes, "seed": self.seed, **width, **CELLS[self.cell]}


@dataclass(frozen=True)
class Outcome:
    """What became of a cell's trials."""

    hidden_size: int
    parameters: int
    pairs_per_second: float
    nats: list[float]  # of each seed, the best held-out


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--cells", nargs="+", choices=list(CELLS), default=list(CELLS))
    parser.add_argument("--width", type=int, help="hidden units in place of the preset's")
    parser.add_argument("--json", type=Path, help="where the figures go too")
    return parser.parse_args()


def run_all(trials: list[Trial], given: argparse.Namespace) -> None:
    """In processes of their own; those that are finished begin and end at once."""
    with ProcessPoolExecutor(given.at_once, multiprocessing.get_context("spawn")) as pool:
        runs = [pool.submit(run_to_its_end, given.table, given.folder / t.name, t.options(given)) for t in trials]
        for trial, run in zip(trials, runs, strict=True):
            run.result()
            print(f"{trial.name} is done", file=sys.stderr)


def run_to_its_end(table: Path, folder: Path, options: dict[str, Any]) -> None:
    """Train; a command ends its process, and this one goes on."""
    try:
        run_trial(table, folder, options)
    except SystemExit as ended:
        if ended.code:
            raise RuntimeError(f"{folder}: training failed") from ended


def config_of(trial: Trial, folder: Path) -> dict[str, Any]:
    """The config.json of a trial that has been run."""
    config: dict[str, Any] = json.loads((folder / trial.name / CONFIG).read_text())
    return config


def parameters(config: dict[str, Any], hidden_size: int | None = None) -> int:
    """What a network learns, with the width of its config or another."""
    known = CellConfig.__dataclass_fields__.keys() & config.keys()
    choices = {key: config[key] for key in known} | ({"hidden_size": hidden_size} if hidden_size else {})
    with torch.device("meta"):
        network = CellEncDec(CellConfig(**choices), seed=None)
    return sum(tensor.numel() for tensor in network.parameters())


def width_for(config: dict[str, Any], wanted: int) -> int:
    """The hidden units that bring a network's parameters nearest to a number."""
    low, high = 1, config["hidden_size"] * 8
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if parameters(config, middle) <= wanted else (low, middle)
    return min(low, high, key=lambda width: abs(parameters(config, width) - wanted))


def outcome_of(trials: list[Trial], folder: Path) -> Outcome:
    """Of one cell's trials, which differ in their seeds."""
    histories = [history_of(folder / trial.name) for trial in trials]
    rates = [history[-1]["pairs"] / max(history[-1]["seconds"], 0.01) for history in histories]
    nats = [min(step["nats_per_token"] for step in history) for history in histories]
    config = config_of(trials[0], folder)
    return Outcome(config["hidden_size"], parameters(config), statistics.mean(rates), nats)


def print_table(title: str, outcomes: dict[str, Outcome]) -> None:
    """As Markdown; the difference is that of the means to the paper's network."""
    print(f"\n| {title} | H | parameters | pairs/s | held-out nats | against {PAPER} |\n|---|---|---|---|---|---|")
    paper = statistics.mean(outcomes[PAPER].nats)
    for cell, of_cell in outcomes.items():
        mean = statistics.mean(of_cell.nats)
        spread = f" ± {statistics.stdev(of_cell.nats):.3f}" if len(of_cell.nats) > 1 else ""
        print(
            f"| {cell} | {of_cell.hidden_size} | {of_cell.parameters:,} | {of_cell.pairs_per_second:,.0f} | "
            f"{mean:.3f}{spread} | {mean - paper:+.3f} |"
        )


def main() -> None:
    """Train, and print both tables."""
    given = arguments()
    given.folder.mkdir(parents=True, exist_ok=True)
    cells = list(dict.fromkeys([PAPER, *given.cells]))
    tables, widths = {}, dict.fromkeys(cells, given.width)
    for title in ("equal width", "equal size"):
        trials = {cell: [Trial(cell, seed, widths[cell]) for seed in given.seeds] for cell in cells}
        run_all([trial for each in trials.values() for trial in each], given)
        tables[title] = {cell: outcome_of(each, given.folder) for cell, each in trials.items()}
        print_table(title, tables[title])
        wanted = tables[title][PAPER].parameters
        configs = {cell: config_of(each[0], given.folder) for cell, each in trials.items()}
        widths = {cell: width_for(config, wanted) for cell, config in configs.items()}
        widths = {cell: width if parameters(configs[cell]) != wanted else given.width for cell, width in widths.items()}
    if given.json:
        of_tables = {title: {cell: vars(of) for cell, of in table.items()} for title, table in tables.items()}
        given.json.write_text(json.dumps(of_tables, indent=2) + "\n")


if __name__ == "__main__":
    main()
