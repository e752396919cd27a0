"""Find penalties of unknown words in a list's totals that its features do not show.

Moses and moses2 copy a word that has no phrase of its own, at a penalty of 100 times a weight, usually 1. Lists do not
show this penalty. It matters where only some hypotheses of a sentence copy the word, because a longer phrase covers it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from moses_rnn.errors import FormatError
from moses_rnn.nbest.bleu import Floats
from moses_rnn.table.phrase_table import FLOAT32_LIMIT

PENALTY = 100.0  # Moses's LOWEST_SCORE
UNKNOWN_WORDS = "UnknownWordPenalty0"
# In penalties:
EXACT = 0.01  # by which rounded totals may differ from those of the weights
NEAR = 0.1  # the same if sparse or other hidden scores are in the totals
JUMP = 0.25  # more is a score that the features do not show
MOST = 1000  # more are not the unknown words of a sentence
ROUNDS = 5
LARGEST = 2.0  # a weight that is not larger than this, or than the largest given weight times this, is credible


@np.errstate(over="ignore", invalid="ignore")  # weights may be absurd
def check_totals(
    name: str,
    sentences: npt.ArrayLike,
    features: npt.ArrayLike,
    totals: npt.ArrayLike,
    *,
    weights: Floats | None,
    penalty: float,
) -> float:
    """Return the largest score that totals contain and features do not show, 0 if there is none of a penalty's size.

    All arrays have a row for each hypothesis. Raise FormatError if these scores are penalties of unknown words. Only
    differences between hypotheses of a sentence count. `weights` may differ from those that made the list.
    """
    of_sentences, values, scores = np.asarray(sentences), np.asarray(features), np.asarray(totals, np.float64)
    order = np.lexsort((-scores, of_sentences))
    order = order[np.abs(scores[order]) < FLOAT32_LIMIT]
    # Neighbours in a sentence's ranking: few pairs of them differ in unknown words
    same = of_sentences[order][1:] == of_sentences[order][:-1]
    better, worse = order[:-1][same], order[1:][same]
    steps, falls = values[worse] - values[better], scores[worse] - scores[better]
    hidden = _find_hidden(steps, falls, weights, penalty) if penalty else np.zeros(len(falls))
    jumps = np.abs(hidden) > JUMP * penalty
    if not jumps.any():
        return 0.0
    if np.median(_distances(hidden[jumps], penalty)) < NEAR * penalty:
        first = int(jumps.argmax())
        pair = f"{scores[better[first]]:g} and {scores[worse[first]]:g}"
        found = f"{pair} in sentence {of_sentences[worse[first]]}, {abs(hidden[first]):.3g} further apart"
        advice = (
            f"Some hypotheses copy a word that others translate, and the list hides its penalty, {UNKNOWN_WORDS}.\n"
            "Make the list with Moses's beam threshold, which leaves out such hypotheses. Or write "
            "'UnknownWordPenalty tuneable=true' in the ini, and lists show the penalty."
        )
        raise FormatError(name, None, "totals that the features explain", found, advice)
    return float(np.abs(hidden).max())


def _find_hidden(steps: Floats, falls: Floats, given: Floats | None, penalty: float) -> Floats:
    """Return what the likeliest weights do not explain of the differences between totals."""
    start = np.zeros(steps.shape[1]) if given is None else given
    fitted = _fit(steps, falls, start)
    candidates = [] if given is None else [given]
    if np.abs(fitted).max(initial=0) <= LARGEST * max(1.0, np.abs(start).max(initial=0)):
        candidates.append(fitted)
    for weights in candidates:
        hidden = falls - steps @ weights
        if _distances(hidden, penalty).max(initial=0) < EXACT * penalty:
            return hidden
    hidden = falls
    for _ in range(ROUNDS):
        kept = np.abs(hidden) < JUMP * penalty
        hidden = falls - steps @ _fit(steps[kept], falls[kept], start)
    return hidden


def _fit(steps: Floats, falls: Floats, start: Floats) -> Floats:
    """Return weights that explain the differences, by least squares, and are else as near to the start as possible."""
    return start + np.linalg.lstsq(steps, falls - steps @ start, rcond=1e-6)[0]


def _distances(hidden: Floats, penalty: float) -> Floats:
    """Return how far each score is from a whole number of penalties; infinity for too many of them."""
    distances = np.abs(hidden - penalty * np.round(hidden / penalty))
    return np.where(np.abs(hidden) < MOST * penalty, distances, np.inf)
