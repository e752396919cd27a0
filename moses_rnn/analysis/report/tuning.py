"""What tuning made of a feature: BLEU and weights, as `moses-rnn analyse results` recorded them in results.json."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moses_rnn.errors import InputError
from moses_rnn.files.streams import parse_json

BASELINE = "baseline"
PREFERRED = "rnn"  # the system with the score and nothing else
DECISIVE = 0.05  # p below which a gain counts


@dataclass(frozen=True)
class Gain:
    """On a test set: mean BLEU of all tunings without and with the score, and p of each tuning."""

    name: str
    before: float
    after: float
    p: tuple[float, ...]

    @property
    def gain(self) -> float:
        """BLEU."""
        return self.after - self.before

    @property
    def shown_p(self) -> str:
        """For people."""
        return ", ".join(f"{p:.3f}" for p in self.p) or "–"


@dataclass(frozen=True)
class Tuning:
    """A system beside the baseline; `overall_p` are of all test sets together, `weights` by feature, of each tuning."""

    system: str
    sets: tuple[Gain, ...]
    overall_p: tuple[float, ...]
    weights: tuple[Mapping[str, Any], ...]

    @property
    def decisive(self) -> bool:
        """Whether most of the tunings gained more than chance would."""
        p = self.overall_p or tuple(p for one in self.sets for p in one.p)
        return sum(one < DECISIVE for one in p) * 2 > len(p)


def read_tuning(path: str) -> Tuning:
    """Read what results.json tells of the score.

    Raises:
        InputError: it is not such a file, or has no system beside the baseline.
    """
    try:
        record = parse_json(Path(path).read_bytes())
        systems = record["systems"]
        name = PREFERRED if PREFERRED in systems else next(iter(set(systems) - {BASELINE}))
        runs = systems[name]["runs"]
        sets = tuple(_set(test, systems[BASELINE], systems[name]) for test in record["tests"])
        overall = tuple(_finite(run["p"]) for run in runs if "p" in run)
        return Tuning(name, sets, overall, tuple(dict(run.get("weights") or {}) for run in runs))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration) as error:
        raise InputError(
            f"{path}: expected results of a baseline and of a system with the score, found {type(error).__name__}: "
            f"{error}",
            advice="`moses-rnn analyse results` and `make results` write such a file.",
        ) from error


def _set(test: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Gain:
    mean = f"{test}_BLEU"
    p = tuple(_finite(run[f"{test}_p"]) for run in after["runs"] if f"{test}_p" in run)
    return Gain(test, _finite(before[mean]["mean"]), _finite(after[mean]["mean"]), p)


def _finite(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"a number that is not finite, {number}")
    return number
