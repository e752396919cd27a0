"""Tune the weights of n-best lists with mert or Moses's kbmira.

kbmira is run through its files (mert/FeatureArray.cpp, ScoreArray.cpp). They are written here, and not by Moses's
extractor, which would need the lists and references once more; for lists with a hypothesis of every sentence they are
the same byte for byte (`extractor -d`).
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from moses_rnn.errors import InputError, MosesRnnError
from moses_rnn.moses.decoding import Moses
from moses_rnn.moses.ini import weight_of
from moses_rnn.moses.nbest import NBestLine
from moses_rnn.nbest.bleu import MATCHES, REFERENCE_LENGTH, TOTALS, Floats, Integers
from moses_rnn.nbest.lists import TunableList, read_tunable
from moses_rnn.nbest.mert import RESTARTS, search_weights
from moses_rnn.nbest.totals import check_totals
from moses_rnn.nbest.weights import Weights, check_labels, count_values, select_weights, unused_weights

FILES = ("--ffile", "features.dat", "--scfile", "scores.dat")
ROUNDING = 0.01  # of totals and features with six digits
ROUNDS = 300  # scripts/nbest-rescore/train.py; 60 are meant for one of several decoder runs


def tune(
    points: TunableList,
    start: npt.ArrayLike,
    optimiser: str = "mert",
    *,
    seed: int,
    restarts: int = RESTARTS,
    moses: Moses | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Floats:
    """Search for weights with a good BLEU on the lists, beginning with those of `start`.

    The absolute values of the weights add up to 1, without those of constant features. No list says anything about
    these: they keep their ratio to the sum of the others. `moses` has the kbmira that is run, to its end: only mert
    asks `should_stop` and knows restarts.
    """
    begin = np.asarray(start, np.float64)
    if optimiser == "mert":
        best = search_weights(points, begin, seed=seed, restarts=restarts, should_stop=should_stop)
    elif moses is None:
        raise InputError(
            f"{optimiser}: expected a built Moses, found none", advice="Set MOSES_ROOT to its folder, or choose 'mert'."
        )
    else:
        best = begin if points.is_constant.all() else run_kbmira(points, begin, moses, seed=seed)
    before, after = (np.abs(weights[~points.is_constant]).sum() or 1.0 for weights in (begin, best))
    return np.where(points.is_constant, begin / before, best / after)


@dataclass(frozen=True)
class Start:
    """A list to tune on, the weights that a search begins with, and what they do not explain."""

    points: TunableList
    weights: Floats
    unused: list[str]  # features that have a weight but are not in the list
    hidden: float  # largest score in the totals that the features do not show; see `check_totals`
    residual: float  # largest error of totals by recovered weights; 0 if the weights were given


def read_start(
    lines: Iterable[NBestLine], references: Sequence[Sequence[bytes]], name: str, given: Weights | None
) -> Start:
    """Read a list and the weights to start from: the given ones, or those that made the list."""
    if given:
        check_labels(given)
    points = read_tunable(lines, references, name=name, sparse_weights=given.sparse if given else None)
    weights = choose_start(points, given)
    hidden = check_list(points, name, weights, given)
    unused = unused_weights(points.names, given) if given else []
    return Start(points, weights, unused, hidden, 0.0 if given else largest_residual(points, weights))


def recover_weights(points: TunableList) -> Floats:
    """Recover the weights that a list was made with, by least squares from total = Σ weight · feature.

    Totals and features are compared with those of the sentence's first hypothesis, so what all hypotheses of a sentence
    share has no effect. Lists do not show the penalty of unknown words; this assumes that it is shared. A constant
    feature gets the weight 0. Features that cannot be told apart share their weights.
    """
    features, differences = _from_first(points)
    tuned = ~points.is_constant
    weights = np.zeros(len(points.names))
    weights[tuned] = np.linalg.lstsq(features[:, tuned], differences, rcond=None)[0]
    return weights


def largest_residual(points: TunableList, weights: Floats) -> float:
    """Return the largest error of totals predicted by weights, relative to each sentence's first hypothesis."""
    features, differences = _from_first(points)
    return float(np.abs(features @ weights - differences).max(initial=0.0))


def check_list(points: TunableList, name: str, start: Floats, weights: Weights | None) -> float:
    """Check the totals of a list as `check_totals` does; `start` has the given weights or, without any, the list's."""
    sentences = np.nonzero(points.present)[0]
    penalty = (weights or Weights([])).hidden_penalty(points.names)
    rows = sentences, points.features[points.present], points.totals[points.present]
    return check_totals(name, *rows, weights=start if weights else None, penalty=penalty)


def _from_first(points: TunableList) -> tuple[Floats, Floats]:
    """Return differences from the sentence's first hypothesis: features (hypotheses × weights) and totals."""
    shown = points.present & points.present[:, :1]
    return (points.features - points.features[:, :1])[shown], (points.totals - points.totals[:, :1])[shown]


def choose_start(points: TunableList, weights: Weights | None) -> Floats:
    """Return a search's initial weights: the given ones or the list's own, with 0 for added features.

    Raise InputError for a feature of the ini without weights, for which Moses has defaults.
    """
    if weights is None:
        return recover_weights(points)
    counts = count_values(points.names).items()
    added = {label: [0.0] * count for label, count in counts if label not in weights.declared}
    return select_weights(points.names, replace(weights, dense={**added, **weights.dense}))


def run_kbmira(points: TunableList, start: Floats, moses: Moses, *, seed: int) -> Floats:
    """Run Moses's kbmira (batch MIRA; Cherry and Foster, 2012); return the weights in the order of the list's names.

    Raise an error if no weights reach a BLEU above 0.
    """
    options = ["--dense-init", "init.dense", *FILES, "-o", "mira.out", "-J", str(ROUNDS), "-r", str(seed)]
    with tempfile.TemporaryDirectory(prefix="moses-rnn-tune-") as name:
        folder = Path(name)
        # Names without their number: kbmira numbers those itself that follow each other.
        weights = zip(points.names, start, strict=True)
        _write(folder / "init.dense", (f"{label.rpartition('_')[0]}= {weight:.9g}\n" for label, weight in weights))
        _write(folder / "features.dat", format_features(points))
        _write(folder / "scores.dat", format_scores(points))
        moses.run([str(moses.program("kbmira")), *options], folder)
        written = folder / "mira.out"
        text = written.read_text(encoding="utf-8", errors="replace") if written.exists() else ""
    words = text.split()[1::2]  # of lines such as "F0 0.5"
    found = list(map(weight_of, words))
    if not any(found):
        raise MosesRnnError("kbmira: found no weights with a BLEU above 0")
    if len(found) != len(points.names) or not all(map(math.isfinite, found)):
        raise MosesRnnError(f"kbmira: expected {len(points.names)} finite weights in mira.out, found {words}")
    return np.array(found)


def format_features(points: TunableList) -> Iterator[str]:
    """Format the list as features.dat."""
    heading = f"{len(points.names)} {' '.join(points.names)} "
    return _format_sections(points, "FEATURES", heading, points.features, "%.9g " * len(points.names))


def format_scores(points: TunableList) -> Iterator[str]:
    """Format the list's statistics as scores.dat: matches and totals in turn, then the reference length."""
    order = [column for n in range(4) for column in (MATCHES.start + n, TOTALS.start + n)] + [REFERENCE_LENGTH]
    return _format_sections(points, "SCORES", f"{len(order)} BLEU", points.statistics[:, :, order], "%d " * len(order))


def _format_sections(
    points: TunableList, kind: str, heading: str, values: Floats | Integers, form: str
) -> Iterator[str]:
    """Yield a section per sentence; one without hypotheses has that of place 0, the empty translation."""
    for sentence, count in enumerate(points.present.sum(1).tolist()):
        rows = values[sentence, : max(count, 1)].tolist()
        yield f"{kind}_TXT_BEGIN_0 {sentence} {len(rows)} {heading}\n"
        yield from (form % tuple(row) + "\n" for row in rows)
        yield f"{kind}_TXT_END_0\n"


def _write(path: Path, parts: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        file.writelines(parts)
