"""Which hidden units remember and which forget, and at which words, by their gates (section 2.3).

"Those units that learn to capture short-term dependencies will tend to have reset gates that are frequently active, but
those that capture longer-term dependencies will have update gates that are mostly active." A reset gate is active near
r = 0, where the unit ignores its state. An update gate is active near z = 1, where the unit keeps its state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from moses_rnn.analysis.grids import Cell, Grid, readable
from moses_rnn.analysis.inspection import decoder_gates, encoder_gates
from moses_rnn.analysis.scored_table import Floats, Ints, Mask
from moses_rnn.errors import number_of
from moses_rnn.models.model import Model
from moses_rnn.networks.tries import NOTHING
from moses_rnn.table.phrases import words

BINS = 10
MOST = 0.5  # share of the steps
THRESHOLD = 0.5  # an update gate is active if z is above, a reset gate if r is below
UNITS = 5  # to show: so many that remember most, and so many that reset most
WORDS = 5  # to show of each unit, with the highest and with the lowest gate
MIN_TIMES = 5  # how often a word must occur in the sample to be shown
BEGINNING = "(beginning)"  # what a decoder reads before its first word


class WordGate(NamedTuple):
    """A word and the mean gate of one unit at it."""

    word: str
    gate: float


class Unit(NamedTuple):
    """A unit, and the words at which its gate is highest and lowest: z if it remembers, r if it resets."""

    unit: int  # from 0
    z: float  # means
    r: float
    highest: list[WordGate]
    lowest: list[WordGate]


@dataclass(frozen=True)
class GateReport:
    """The gates of all H units over a sample of phrases.

    `z` and `r` are means over steps, `update_active` and `reset_active` shares of steps; H each. A step reads a word
    or ``</s>``. `r` and `reset_active` leave out an encoder's first step, which has no state to reset. `remembering`
    are the units with the highest z, `resetting` those with the lowest r, the most extreme first.
    """

    network: str
    phrases: int
    steps: int
    z: Floats
    r: Floats
    update_active: Floats
    reset_active: Floats
    remembering: list[Unit]
    resetting: list[Unit]

    @property
    def long_term(self) -> Mask:
        """Units whose update gate is active in most steps; H."""
        return self.update_active > MOST

    @property
    def short_term(self) -> Mask:
        """Units whose reset gate is active in most steps; H."""
        return self.reset_active > MOST


def measure_gates(model: Model, sources: Sequence[bytes], targets: Sequence[bytes] | None = None) -> GateReport:
    """Summarise the gates of the encoder while it reads phrases or, if `targets` are given, those of the decoder."""
    read = [model.source_vocabulary.ids(words(source)) for source in sources]
    if targets is None:
        vocabulary, gates = model.source_vocabulary, encoder_gates(model.network, read)
    else:
        vocabulary = model.target_vocabulary
        gates = decoder_gates(model.network, read, [vocabulary.ids(words(target)) for target in targets])
    has_state = np.ones(len(gates.words), np.bool_)
    if targets is None:
        has_state[np.unique(gates.phrases, return_index=True)[1]] = False  # h_0 = 0
    names = [*map(readable, vocabulary.words), BEGINNING]
    at = np.where(gates.words == NOTHING, len(names) - 1, gates.words)
    resets, at_resets = gates.r[has_state], at[has_state]
    z, r = _mean(gates.z), _mean(resets)

    def extreme(order: Floats, values: npt.NDArray[Any], read_at: Ints) -> list[Unit]:
        units = np.argsort(order, kind="stable")[:UNITS].tolist()
        return [Unit(unit, z[unit], r[unit], *_ends(values[:, unit], read_at, names)) for unit in units]

    return GateReport(
        network="encoder" if targets is None else "decoder",
        phrases=len(sources),
        steps=len(at),
        z=z,
        r=r,
        update_active=_mean(gates.z > THRESHOLD),
        reset_active=_mean(resets < THRESHOLD),
        remembering=extreme(-z, gates.z, at),
        resetting=extreme(r, resets, at_resets),
    )


def _mean(values: npt.NDArray[Any]) -> Floats:
    means: Floats = values.sum(0, dtype=np.float64) / max(len(values), 1)
    return means


def _ends(gates: npt.NDArray[Any], at: Ints, names: Sequence[str]) -> tuple[list[WordGate], list[WordGate]]:
    """Return the words at which a unit's gate is highest and lowest, the most extreme first."""
    times, sums = (np.bincount(at, weights, len(names)) for weights in (None, gates))
    seen = np.flatnonzero(times >= max(min(MIN_TIMES, times.max(initial=0)), 1))
    means = sums[seen] / times[seen]
    found = [WordGate(names[seen[i]], float(means[i])) for i in np.argsort(-means, kind="stable")]
    shown = min(WORDS, len(found) // 2)  # so that no word is in both lists
    return found[:shown], found[::-1][:shown]


def as_text(report: GateReport) -> list[str]:
    """Format the report for people."""
    both = int((report.long_term & report.short_term).sum())
    long, short, units = int(report.long_term.sum()), int(report.short_term.sum()), len(report.z)
    return [
        f"{report.network}: {number_of(units, 'unit')}, {number_of(report.phrases, 'phrase')}, "
        f"{number_of(report.steps, 'step')}",
        "",
        "units by their mean gate:",
        _line("from", [f"{i / BINS:.1f}" for i in range(BINS)]),
        _line("z (1 keeps)", np.histogram(report.z, BINS, (0, 1))[0]),
        _line("r (0 resets)", np.histogram(report.r, BINS, (0, 1))[0]),
        f"mean z from {report.z.min():.3f} to {report.z.max():.3f}, over all units {report.z.mean():.3f}",
        f"mean r from {report.r.min():.3f} to {report.r.max():.3f}, over all units {report.r.mean():.3f}",
        "",
        f"long-term units, z > {THRESHOLD:g} in most steps: {long:,} of {units:,}",
        f"short-term units, r < {THRESHOLD:g} in most steps: {short:,} of {units:,}",
        f"both: {both:,}; neither: {units - long - short + both:,}",
        *_units("Units that remember most", report.remembering, "z", ("keep at", "take in")),
        *_units("Units that reset most", report.resetting, "r", ("remember at", "reset at")),
    ]


def _line(name: str, cells: Iterable[object]) -> str:
    return f"  {name:<14}" + "".join(f"{cell!s:>6}" for cell in cells)


def _units(title: str, units: Sequence[Unit], gate: str, verbs: tuple[str, str]) -> Iterator[str]:
    yield from ("", f"{title} (words with their mean {gate}):")
    for unit in units:
        yield f"  unit {unit.unit:<5} z {unit.z:.3f}  r {unit.r:.3f}"
        for verb, gates in zip(verbs, (unit.highest, unit.lowest), strict=True):
            yield f"    {verb + ':':<13}" + "  ".join(f"{word} {value:.2f}" for word, value in gates)


def as_grid(report: GateReport) -> Grid:
    """Return a row for each unit: means and shares from 0 to 1, and 0 or 1 for long_term and short_term."""
    header = ("unit", "mean_z", "mean_r", "update_active", "reset_active", "long_term", "short_term")
    figures = np.column_stack([report.z, report.r, report.update_active, report.reset_active])
    rows: list[list[Cell]] = [
        [unit, *(f"{value:.6f}" for value in values), int(long), int(short)]
        for unit, (values, long, short) in enumerate(zip(figures, report.long_term, report.short_term, strict=True))
    ]
    return Grid("", header, rows)
