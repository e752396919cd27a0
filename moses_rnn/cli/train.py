"""moses-rnn-train: a phrase table in, a model folder out."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moses_rnn.cli.command import (
    STOPPED,
    check_inputs,
    command,
    print_json,
    print_out,
    shows_version,
)
from moses_rnn.cli.inputs import default_model
from moses_rnn.cli.training import (
    Estimate,
    check_options,
    print_next,
    print_speed,
    run_training,
    shown_presets,
    takes_settings,
)
from moses_rnn.options import Json
from moses_rnn.table.tab_separated import LAYOUTS
from moses_rnn.training.presets import SHARES_OF_UNIGRAMS
from moses_rnn.training.training_options import Learning, Options, RunOptions, TableOptions

if TYPE_CHECKING:
    from moses_rnn.training.train import Outcome

FAR_BELOW = 0.8  # a model that costs more than this share of what a unigram model costs has hardly begun to learn

EPILOG = f"""\b
Example: train for a quarter of an hour, then score the same table:
  moses-rnn-train phrase-table.gz --max-minutes 15
  moses-rnn-score phrase-table.gz
On all GPUs of a machine, restarting when a process dies (docs/training.md):
  torchrun --standalone --nproc-per-node gpu --max-restarts 3 --no-python moses-rnn-train phrase-table.gz

{shown_presets("encdec")}
The model learns log p(target | source), including both sides' end symbols. After any interruption, even kill -9, run
the same command again: it continues where it stopped. Exit codes: 0 done, 1 failure, 2 usage error, 3 table or
model refused, {STOPPED} stopped and resumable.
"""


@command(EPILOG)
@shows_version
@takes_settings
def main(
    table: TableOptions,
    learning: Learning,
    *,
    estimate: Estimate = False,
    run: RunOptions,
    as_json: Json = False,
) -> None:
    """Train an RNN Encoder-Decoder on the phrase pairs of a Moses PHRASE_TABLE (plain or .gz)."""
    if estimate and as_json:
        raise click.UsageError("--json prints the summary of a training run: it cannot be combined with --estimate")
    options = check_options(table, learning, run)
    check_inputs(table.phrase_table, table.source_embeddings, table.target_embeddings)
    if estimate:
        _print_estimate(options)
        return
    options["model"] = folder = table.model or default_model(table.phrase_table, inverse=table.inverse)
    outcome = run_training(options, _warning)
    if outcome.progress.best < (outcome.baseline_cost or math.inf):  # else it will be refused
        print_next(*_next_words(options), quiet=run.quiet)
    if as_json:
        print_json(_record(outcome, folder))


def _next_words(options: Options) -> list[str | Path]:
    """Return the command that scores the table, or the one that trains the direct model first if there is none."""
    table, inverse = options["phrase_table"], options["inverse"]
    if options["layout"] != LAYOUTS[0]:
        return ["moses-rnn-score", table, "--model", options["model"], "--format", options["layout"]]
    if inverse and not default_model(table).is_dir():
        return ["moses-rnn-train", table]
    return ["moses-rnn-score", table, "--inverse-model" if inverse else "--model", options["model"]]


def _warning(outcome: Outcome) -> str:
    best, rival, measure = outcome.progress.best, outcome.baseline_cost or math.inf, outcome.measure
    if best >= rival:
        return (
            f"{outcome.verdict}; moses-rnn-score will refuse this model. Train longer, or with another --learning-rate"
        )
    if best > FAR_BELOW * rival:
        return f"{best:.2f} {measure.unit} is not far below {measure.rival}'s {rival:.2f}: train longer before scoring"
    return ""


def _record(outcome: Outcome, folder: Path) -> dict[str, Any]:
    """Return the summary of a run for --json; costs are held-out, and the rival is a unigram model or guessing."""
    progress, warning = outcome.progress, _warning(outcome)
    return {
        "model": str(folder),
        "finished": progress.finished,
        "pairs": progress.examples,
        "steps": progress.steps,
        "seconds": round(progress.seconds, 3),
        "best_cost": progress.best,
        "rival_cost": outcome.baseline_cost,
        "unit": outcome.measure.unit,
        "verdict": outcome.verdict.name,
        "verdict_text": str(outcome.verdict),
        "warnings": [warning] if warning else [],
    }


def _print_estimate(options: Options) -> None:
    """Print how long training takes, and what cost to expect if there is something to compare with."""
    print_speed(options)
    if options["architecture"] == "encdec":
        reached = ", ".join(f"{share:.0%} after {passes:g}" for passes, share in SHARES_OF_UNIGRAMS)
        print_out(
            "For comparison: on Multi30k (828,000 pairs), the cost with --preset small, as a share of a unigram "
            f"model's, was {reached} passes",
        )
