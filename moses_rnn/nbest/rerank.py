"""Choose the best hypothesis of each sentence, by new weights or by the references, and format its phrases."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from moses_rnn.errors import FormatError, InputError
from moses_rnn.moses.nbest import NBestLine, segmentation_of
from moses_rnn.nbest.bleu import Floats, Integers, References, corpus_bleu, smoothed_bleu
from moses_rnn.nbest.lists import Features, TunableList, read_tunable, statistics_of
from moses_rnn.nbest.totals import check_totals
from moses_rnn.nbest.weights import Weights, select_weights, unused_weights
from moses_rnn.table.phrases import words

Scored = Iterator[tuple[float, NBestLine]]

MOST_MISSING = 100_000  # sentences without a hypothesis in a list without a reference; more come from a wrong number


def choose_hypotheses(scored: Scored, name: str) -> dict[int, NBestLine]:
    """Return each sentence's line with the highest score; ties go to the first. Raise an error for an empty list."""
    best: dict[int, tuple[float, NBestLine]] = {}
    for score, line in scored:
        if line.sentence not in best or score > best[line.sentence][0]:
            best[line.sentence] = score, line
    if not best:
        raise InputError(f"{name}: expected hypotheses, found an empty list")
    return {sentence: line for sentence, (_, line) in best.items()}


@dataclass
class WeightedSum:
    """Scores the lines of a list by Σ weight · feature, and remembers their features."""

    name: str
    weights: Weights
    unused: list[str] = field(default_factory=list)  # features that have a weight but are not in the list

    def __post_init__(self) -> None:
        self._names: Sequence[str] = ()
        self._selected = np.zeros(0)
        self._rows: list[tuple[int, Floats, float]] = []

    def score(self, lines: Iterable[NBestLine]) -> Scored:
        """Score lines; raise an error if weights or lines lack a feature."""
        features: Features | None = None
        for line in lines:
            if features is None:
                features = Features(line, self.name, self.weights.sparse)
                self._names, self._selected = features.names, select_weights(features.names, self.weights)
                self.unused = unused_weights(features.names, self.weights)
                selected = self._selected.tolist()
            values = features.values(line)
            self._rows.append((line.sentence, np.array(values), float(line.total)))
            yield sum(weight * value for weight, value in zip(selected, values, strict=True)), line

    def check_used(self) -> None:
        """Raise InputError if a feature that has a weight is not in the scored list."""
        if self.unused:
            raise InputError(
                f"{self.name}: expected all features for which the weights were tuned, found none of "
                f"{', '.join(self.unused)}"
            )

    def find_hidden(self) -> float:
        """Check the totals of the scored lines; see `check_totals`."""
        penalty = self.weights.hidden_penalty(self._names)
        return check_totals(self.name, *zip(*self._rows, strict=True), weights=self._selected, penalty=penalty)


def score_evenly(lines: Iterable[NBestLine], label: str, name: str) -> Scored:
    """Score lines by total + feature; raise an error for a line without exactly one value of that label.

    That is the even average of Sutskever et al. (2014), section 3.4; it depends on the scale of the totals' weights.
    """
    for line in lines:
        values = line.values(label)
        if len(values) != 1:
            raise FormatError(name, line.number, f"one value of {label}=", str(len(values)))
        if not math.isfinite(score := float(line.total) + values[0]):
            found = f"{float(line.total)} and {values[0]}"
            raise FormatError(name, line.number, f"a finite total and a finite {label}", found)
        yield score, line


def count_sentences(best: Mapping[int, NBestLine], name: str) -> int:
    """Return the number of sentences up to the last one; raise FormatError if the list lacks too many of them."""
    last = max(best)
    if last >= len(best) + MOST_MISSING:
        expected = f"a sentence number below {len(best) + MOST_MISSING:,}, since the list has {len(best):,} of them"
        advice = "If the list lacks so many sentences, --reference tells how many there are."
        raise FormatError(name, best[last].number, expected, f"{last:,}", advice)
    return last + 1


def list_translations(best: Mapping[int, NBestLine], sentences: int) -> list[bytes]:
    """Return a line for each sentence; empty if the list has none."""
    return [best[i].hypothesis if i in best else b"" for i in range(sentences)]


def format_segments(best: Mapping[int, NBestLine], sentences: int, name: str) -> list[bytes]:
    """Return these lines with ``|0-1|`` after each phrase, as the decoder's ``-report-segmentation`` prints it."""
    return [_format_phrases(best[i], name) if i in best else b"" for i in range(sentences)]


def _format_phrases(line: NBestLine, name: str) -> bytes:
    spans, target = segmentation_of(line, name), words(line.hypothesis)
    if spans is None and target:
        advice = "Make the list with -include-segmentation-in-n-best."
        raise FormatError(name, line.number, "a segmentation", "none", advice)
    return b" ".join(
        b" ".join(target[begin:end]) + b" |%d-%d|" % (first, last)
        for first, last, begin, end in spans or []
        if begin < end  # the decoder reports no phrase without target words
    )


def compare_bleu(
    lines: Iterable[NBestLine], references: Sequence[Sequence[bytes]], name: str, chosen: Sequence[bytes]
) -> tuple[float, float, float]:
    """Return BLEU, 0 to 100, of the first hypotheses, the chosen ones (a line each), and the oracle's."""
    points = read_tunable(lines, references, name=name, sparse_weights={})
    texts = References(references)
    of_chosen = np.array([texts.statistics(i, line) for i, line in enumerate(chosen)])
    sums = points.statistics[:, 0].sum(0), of_chosen.sum(0), statistics_of(points, find_oracle(points))
    before, after, oracle = (100 * float(corpus_bleu(of_all)) for of_all in sums)
    return before, after, max(before, after, oracle)  # the oracle is found approximately


def find_oracle(points: TunableList) -> Integers:
    """Find a choice of hypotheses that no change of a single one improves in the corpus's BLEU, one for each sentence.

    It begins with the best smoothed BLEU of each sentence and then goes through the sentences until none changes; the
    true oracle may be better still. Of equally good hypotheses the first in the list; 0 where there is none.
    """
    # Padding repeats the first hypothesis, which comes before it.
    statistics = np.where(points.present[:, :, None], points.statistics, points.statistics[:, :1])
    chosen: Integers = smoothed_bleu(statistics).argmax(1)
    total = statistics_of(points, chosen)
    changed = True
    while changed:
        changed = False
        for sentence, of_sentence in enumerate(statistics):
            sums = total - of_sentence[chosen[sentence]] + of_sentence  # hypotheses × 10
            bleus = corpus_bleu(sums)
            best = bleus.argmax()
            if bleus[best] > bleus[chosen[sentence]]:
                chosen[sentence], total, changed = best, sums[best], True
    return chosen
