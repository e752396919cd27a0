"""Trials as a table in Markdown, each against the baseline of the same tuner and seeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import mean, stdev
from typing import Any

from moses_rnn.analysis.trials import ALL
from moses_rnn.formats.runs import DEV

Json = dict[str, Any]


def format_trials(
    records: Sequence[Json], tests: Sequence[str], samples: int, failed: Mapping[str, str] | None = None
) -> Iterator[str]:
    """The lines of the table, of the text below it included.

    Args:
        records: of `moses_rnn.analysis.trials.compare_trial`.
        tests: the test sets.
        samples: of the paired bootstrap.
        failed: what went wrong, by the names of the trials that have no record.
    """
    header = ["trial", "tuner", "held-out nats", "minutes", "dev BLEU", *_header(tests), "settings"]
    yield f"| {' | '.join(header)} |"
    yield "|" + "---|" * len(header)
    for tuner in dict.fromkeys(record["tuner"] for record in records):
        of_tuner = [record for record in records if record["tuner"] == tuner]
        yield f"| {' | '.join(_baseline_cells(tuner, of_tuner, tests))} |"
        for record in of_tuner:
            yield f"| {' | '.join(_cells(record, tests))} |"
    for name, text in (failed or {}).items():
        yield f"| {' | '.join([name, text, *[''] * (len(header) - 2)])} |"
    if records:
        yield ""
        yield _caption(records[0], samples)


def _header(tests: Sequence[str]) -> Iterator[str]:
    for test in tests:
        yield from (f"{test} BLEU", "Δ", "p by seed")
    if len(tests) > 1:
        yield from ("Δ, all sets", "p by seed, all sets")


def _baseline_cells(tuner: str, records: Sequence[Json], tests: Sequence[str]) -> list[str]:
    """The baseline with all seeds of its trials."""
    runs = {run["seed"]: run["baseline"] for record in records for run in record["runs"]}.values()
    cells = ["Baseline", tuner, "", "", _spread([run[f"{DEV}_BLEU"] for run in runs])]
    for test in tests:
        cells += [_spread([run[f"{test}_BLEU"] for run in runs]), "", ""]
    return [*cells, *["", ""] * (len(tests) > 1), ""]


def _cells(record: Json, tests: Sequence[str]) -> list[str]:
    runs, nats = record["runs"], record["held_out_nats"]
    cells = [
        record["name"],
        record["tuner"],
        "" if nats is None else f"{nats:.3f}",
        f"{record['minutes']:.{0 if record['minutes'] >= 10 else 1}f}",
        _spread([run["system"][f"{DEV}_BLEU"] for run in runs]),
    ]
    for test in tests:
        cells += [
            _spread([run["system"][f"{test}_BLEU"] for run in runs]),
            *_compared(runs, f"{test}_BLEU", f"{test}_p"),
        ]
    cells += _compared(runs, f"{ALL}_BLEU", "p") if len(tests) > 1 else []
    return [*cells, ", ".join(f"{key} {_value(value)}" for key, value in record["settings"].items())]


def _compared(runs: Sequence[Json], score: str, p: str) -> list[str]:
    """The mean gain over the baseline of the same seed, and the p of each seed."""
    gain = mean(run["system"][score] - run["baseline"][score] for run in runs)
    return [f"{gain:+.2f}", ", ".join(f"{run['system'][p]:.3f}" for run in runs)]


def _spread(values: Sequence[float]) -> str:
    return f"{mean(values):.2f}" + (f" ± {stdev(values):.2f}" if len(values) > 1 else "")


def _value(value: object) -> str:
    return "+".join(map(str, value)) if isinstance(value, list | tuple) else str(value).lower()


def _caption(record: Json, samples: int) -> str:
    return (
        "Mean ± standard deviation over the seeds of the tunings; Δ: against the baseline of the same tuner and seed, "
        f"the mean; p: paired bootstrap of {samples:,} samples against it; held-out nats per target token, the mean of "
        f"a trial's networks; minutes of training, of all of them together; {record['runs'][0]['signature']}"
    )
