"""What the gates of each hidden unit do: which units remember, which forget, and at which words (section 2.3).

"Those units that learn to capture short-term dependencies will tend to have reset gates that are frequently active, but
those that capture longer-term dependencies will have update gates that are mostly active." A reset gate is active near
r = 0, where the unit ignores its state; an update gate near z = 1, where the unit keeps it.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from moses_rnn.analysis.choices import NETWORKS
from moses_rnn.analysis.correlation import Floats
from moses_rnn.analysis.phrase_samples import Pair
from moses_rnn.formats.grids import readable
from moses_rnn.formats.phrase_forms import words
from moses_rnn.inference.inspection import PHRASES, Gates, decoder_gates, encoder_gates
from moses_rnn.inference.tries import NOTHING
from moses_rnn.models.checkpoint import Checkpoint
from moses_rnn.models.vocabulary import Vocabulary

Mask = npt.NDArray[np.bool_]
Show = Callable[[int], None]

BINS = 10
MOST = 0.5  # of the steps
THRESHOLD = 0.5  # an update gate is active where z is above, a reset gate where r is below
UNITS = 5  # are shown that remember most, and that reset most
WORDS = 5  # are shown of each, on either side
MIN_TIMES = 5  # that a word must come in the sample to be shown
BEGINNING = "(beginning)"  # what a decoder reads before its first word
CSV_COLUMNS = ("unit", "mean_z", "mean_r", "update_active", "reset_active", "long_term", "short_term")


class WordGate(NamedTuple):
    """A word and the mean gate of one unit at it, over its `times` in the sample."""

    word: str
    gate: float
    times: int


@dataclass(frozen=True)
class Unit:
    """A unit and the words at which its gate is highest and lowest: z of one that remembers, r of one that resets."""

    unit: int  # from 0
    z: float
    r: float
    highest: list[WordGate]
    lowest: list[WordGate]


@dataclass(frozen=True)
class GateReport:
    """The gates of all H units over a sample of phrases.

    `z` and `r` are means over steps, `update_active` and `reset_active` shares of steps; H each. `steps` are words that
    were read, ``</s>`` included; an encoder's first step is left out of `r` and `reset_active`, as there is no state
    yet that it could reset. `remembering` are the units of highest z, `resetting` those of lowest r, the extreme first.
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
        """Units whose update gate is active at most steps; H."""
        return self.update_active > MOST

    @property
    def short_term(self) -> Mask:
        """Units whose reset gate is active at most steps; H."""
        return self.reset_active > MOST

    def histogram(self, gate: str) -> list[int]:
        """How many units have a mean "z" or "r" within 0 to 0.1, 0.1 to 0.2, … 0.9 to 1."""
        counts: list[int] = np.histogram({"z": self.z, "r": self.r}[gate], BINS, (0, 1))[0].tolist()
        return counts


def measure_gates(
    checkpoint: Checkpoint, pairs: Sequence[Pair], network: str, show: Show = lambda _: None
) -> GateReport:
    """Run a network over phrases and look at its gates.

    The phrases go through the network twice, for means of all units and then for words of few: all gates of all steps
    would be too many to keep.

    Args:
        checkpoint: of the network.
        pairs: a sample, in the network's words (of an encoder, only `read` counts).
        network: "encoder" or "decoder".
        show: called with how many phrases are done; each counts twice.
    """
    runs = _Runs(checkpoint, pairs, network)
    sums, steps, reset_steps = np.zeros((4, checkpoint.model.config.hidden_size)), 0, 0
    for done, gates in runs:
        resettable = gates.r[runs.has_state(gates)]
        sums += [
            gates.z.sum(0, dtype=np.float64),
            resettable.sum(0, dtype=np.float64),
            (gates.z > THRESHOLD).sum(0),
            (resettable < THRESHOLD).sum(0),
        ]
        steps, reset_steps = steps + len(gates.z), reset_steps + len(resettable)
        show(done)
    z, r, update, reset = sums / np.maximum([[steps], [reset_steps], [steps], [reset_steps]], 1)
    extremes = np.argsort(-z, kind="stable")[:UNITS], np.argsort(r, kind="stable")[:UNITS]
    of_words = _WordSums(runs.vocabulary, *extremes)
    for done, gates in runs:
        of_words.add(gates, runs.has_state(gates))
        show(len(pairs) + done)
    units = ([Unit(int(i), z[i], r[i], *of_words.ends(gate, n)) for n, i in enumerate(chosen)]
             for gate, chosen in enumerate(extremes))  # fmt: skip
    return GateReport(network, len(pairs), steps, z, r, update, reset, *units)


class _Runs:
    """Runs of a network over phrases, some at a time."""

    def __init__(self, checkpoint: Checkpoint, pairs: Sequence[Pair], network: str) -> None:
        self._checkpoint = checkpoint
        self._pairs = pairs
        self._is_encoder = NETWORKS.index(network) == 0
        self.vocabulary = checkpoint.source_vocabulary if self._is_encoder else checkpoint.target_vocabulary

    def __iter__(self) -> Iterator[tuple[int, Gates]]:
        """How many phrases are done, and the gates of the last ones."""
        for first in range(0, len(self._pairs), PHRASES):
            block = self._pairs[first : first + PHRASES]
            yield first + len(block), self._gates(block)

    def _gates(self, pairs: Sequence[Pair]) -> Gates:
        model = self._checkpoint.model
        read = [self._checkpoint.source_vocabulary.ids(words(pair.read)) for pair in pairs]
        if self._is_encoder:
            return encoder_gates(model, read)
        return decoder_gates(model, read, [self._checkpoint.target_vocabulary.ids(words(p.written)) for p in pairs])

    def has_state(self, gates: Gates) -> Mask:
        """The steps before which there is a state: all of a decoder, all but the first of an encoder (h_0 = 0)."""
        is_later: Mask = np.append(False, gates.phrases[1:] == gates.phrases[:-1])[: len(gates.phrases)]
        return is_later if self._is_encoder else np.ones(len(gates.phrases), np.bool_)


class _WordSums:
    """Sums of the gates of a few units, by word: z of the first ones, r of the others."""

    def __init__(self, vocabulary: Vocabulary, remembering: Any, resetting: Any) -> None:
        self._vocabulary = vocabulary
        self._units = remembering, resetting
        rows = len(vocabulary) + 1  # NOTHING is the last
        self._sums = [np.zeros((rows, len(units))) for units in self._units]
        self._times = [np.zeros(rows, np.int64) for _ in self._units]

    def add(self, gates: Gates, has_state: Mask) -> None:
        everywhere = np.ones(len(has_state), np.bool_)
        for i, (values, steps) in enumerate(((gates.z, everywhere), (gates.r, has_state))):
            read = gates.words[steps]
            np.add.at(self._sums[i], read, values[steps][:, self._units[i]])
            self._times[i] += np.bincount(np.where(read == NOTHING, len(self._vocabulary), read),
                                          minlength=len(self._times[i]))  # fmt: skip

    def ends(self, gate: int, unit: int) -> tuple[list[WordGate], list[WordGate]]:
        """The words at which a unit's gate is highest, and lowest; of equal ones the more frequent in training."""
        times = self._times[gate]
        least = min(MIN_TIMES, int(times.max(initial=0)))
        seen = np.flatnonzero(times >= max(least, 1))
        means = self._sums[gate][seen, unit] / times[seen]
        order = np.argsort(-means, kind="stable")
        gates = [WordGate(self._name(int(seen[i])), float(means[i]), int(times[seen[i]])) for i in order]
        shown = min(WORDS, len(gates) // 2)  # none on both sides
        return gates[:shown], gates[::-1][:shown]

    def _name(self, word: int) -> str:
        return BEGINNING if word == len(self._vocabulary) else readable(self._vocabulary.words[word])


def as_text(report: GateReport) -> list[str]:
    """The report for people to read."""
    both = int((report.long_term & report.short_term).sum())
    long, short, units = int(report.long_term.sum()), int(report.short_term.sum()), len(report.z)
    return [
        f"{report.network}: {units:,} units, {report.phrases:,} phrases, {report.steps:,} steps",
        "",
        "units by their mean gate:",
        _line("from", [f"{i / BINS:.1f}" for i in range(BINS)]),
        _line("z (1 keeps)", report.histogram("z")),
        _line("r (0 resets)", report.histogram("r")),
        f"mean z from {report.z.min():.3f} to {report.z.max():.3f}, of all units {report.z.mean():.3f}",
        f"mean r from {report.r.min():.3f} to {report.r.max():.3f}, of all units {report.r.mean():.3f}",
        "",
        f"long-term units, z > {THRESHOLD:g} at most steps: {long:,} of {units:,}",
        f"short-term units, r < {THRESHOLD:g} at most steps: {short:,} of {units:,}",
        f"both: {both:,}; neither: {units - long - short + both:,}",
        *_units("Units that remember most", report.remembering, "z", ("keep at", "take in")),
        *_units("Units that reset most", report.resetting, "r", ("remember at", "reset at")),
    ]


def _line(name: str, cells: Sequence[object]) -> str:
    return f"  {name:<14}" + "".join(f"{cell!s:>6}" for cell in cells)


def _units(title: str, units: Sequence[Unit], gate: str, verbs: tuple[str, str]) -> Iterator[str]:
    yield from ("", f"{title} (words with their mean {gate}):")
    for unit in units:
        yield f"  unit {unit.unit:<5} z {unit.z:.3f}  r {unit.r:.3f}"
        for verb, gates in zip(verbs, (unit.highest, unit.lowest), strict=True):
            yield f"    {verb + ':':<13}" + "  ".join(f"{word} {value:.2f}" for word, value, _ in gates)


def as_csv(report: GateReport) -> str:
    """A line for each unit, from 0: CSV_COLUMNS; shares and means from 0 to 1, long_term and short_term 0 or 1."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    columns = report.z, report.r, report.update_active, report.reset_active
    for unit, values in enumerate(zip(*columns, strict=True)):
        writer.writerow([unit, *(f"{value:.6f}" for value in values),
                         int(report.long_term[unit]), int(report.short_term[unit])])  # fmt: skip
    return text.getvalue()
