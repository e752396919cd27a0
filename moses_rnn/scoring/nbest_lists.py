"""N-best lists in, the same lists with further features out, each the sum of what a producer says of its parts."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from moses_rnn.errors import FormatError, MosesRnnError, shown
from moses_rnn.formats.nbest import NAME, NBestLine
from moses_rnn.formats.phrase_forms import words
from moses_rnn.scoring.producers import Phrases, ScoreProducer, Scores

LINES = 20_000  # hypotheses scored together; a sentence's list is never parted
# ``0-1=0-1 2=2 …``: source words = target words, both from 0
SEGMENTATION = re.compile(rb"[0-9]+(-[0-9]+)?=[0-9]+(-[0-9]+)?( [0-9]+(-[0-9]+)?=[0-9]+(-[0-9]+)?)*")
SPAN = re.compile(rb"([0-9]+)(?:-([0-9]+))?=([0-9]+)(?:-([0-9]+))?")

Pair = tuple[bytes, bytes]


class HypothesisScorer:
    """Scores hypotheses as whole sentences: a language model, a word penalty, a network that has read sentences."""

    def __init__(self, producer: ScoreProducer) -> None:
        self.producer = producer

    def scores(self, lines: Sequence[NBestLine], sources: Phrases) -> Scores:
        """Natural logarithms; lines × num_scores. Equal pairs of source and hypothesis are scored once."""
        return _distinct(
            [(source, line.hypothesis) for source, line in zip(sources, lines, strict=True)], self.producer
        )


class SegmentationScorer:
    """Scores the phrase pairs that a hypothesis is made of, and adds them up, as the decoder does.

    Words that the decoder copied because no phrase has them are pairs too: their score is the same in all hypotheses.
    """

    def __init__(self, producer: ScoreProducer, name: str) -> None:
        self.producer = producer
        self._name = name  # of the list, for messages

    def scores(self, lines: Sequence[NBestLine], sources: Phrases) -> Scores:
        """Natural logarithms; lines × num_scores. Equal phrase pairs are scored once.

        Raises:
            FormatError: a line has no segmentation, or one that does not fit.
        """
        pairs = [self._pairs(line, source) for line, source in zip(lines, sources, strict=True)]
        ends = np.cumsum([len(of_line) for of_line in pairs])
        values = _distinct([pair for of_line in pairs for pair in of_line], self.producer)
        totals = np.concatenate([np.zeros((1, self.producer.num_scores)), np.cumsum(values, 0)])[ends]
        return np.diff(totals, axis=0, prepend=0.0)

    def _pairs(self, line: NBestLine, source: bytes) -> list[Pair]:
        read, written = words(source), words(line.hypothesis)
        found = segmentation_of(line)
        if found is None:
            if not written:
                return []
            advice = "Make the list with -include-segmentation-in-n-best, or score whole sentences with --whole."
            raise FormatError(self._name, None, f"a segmentation of sentence {line.sentence}", "none", advice)
        pairs = []
        for first, last, begin, end in found:
            if last >= len(read) or end >= len(written):
                what = f"words of sentence {line.sentence} ({len(read)} source, {len(written)} target)"
                raise FormatError(self._name, None, what, f"{first}-{last}={begin}-{end}: {shown(line.line)}")
            pairs.append((b" ".join(read[first : last + 1]), b" ".join(written[begin : end + 1])))
        return pairs


def segmentation_of(line: NBestLine) -> list[tuple[int, int, int, int]] | None:
    """First and last source word, first and last target word of each phrase, from 0; None without a segmentation."""
    for text in line.further:
        if SEGMENTATION.fullmatch(text):
            spans = [[group and int(group) for group in span.groups()] for span in SPAN.finditer(text)]
            return [(a, a if b is None else b, c, c if d is None else d) for a, b, c, d in spans]  # type: ignore[misc]
    return None


def _distinct(pairs: Sequence[Pair], producer: ScoreProducer) -> Scores:
    """Scores of pairs, each distinct one scored once, in an order that does not depend on the list's."""
    distinct = sorted(set(pairs))
    place = {pair: i for i, pair in enumerate(distinct)}
    scores = producer.log_probs([source for source, _ in distinct], [target for _, target in distinct])
    return scores[[place[pair] for pair in pairs]] if pairs else np.zeros((0, producer.num_scores))


Scorer = HypothesisScorer | SegmentationScorer


@dataclass(frozen=True)
class NBestFeature:
    """A feature to be added: its label, and what gives its values."""

    label: str
    scorer: Scorer


@dataclass
class NBestReport:
    """What was added: counts for the user, and whether a feature can choose anything."""

    lines: int = 0
    sentences: int = 0
    choosing: dict[str, bool] = field(default_factory=dict)  # by label: whether it differs within a sentence's list

    @property
    def constant(self) -> list[str]:
        """The features that no tuning can use."""
        return [label for label, chooses in self.choosing.items() if not chooses]


def labelled(first: NBestLine | None, named: Iterable[tuple[str, Scorer]]) -> list[NBestFeature]:
    """Features with the next free number in their labels: CSLM0, or CSLM1 if the list has a CSLM0."""
    taken = (
        {word[:-1].decode("ascii", "replace") for word in words(first.features) if word.endswith(b"=")}
        if first
        else set()
    )
    features = []
    for name, scorer in named:
        label = next(label for n in itertools.count() if (label := f"{name}{n}") not in taken)
        assert NAME.fullmatch(label)
        taken.add(label)
        features.append(NBestFeature(label, scorer))
    return features


def with_features(
    lines: Iterable[NBestLine],
    sources: Sequence[bytes],
    features: Sequence[NBestFeature],
    name: str,
    report: NBestReport,
) -> Iterator[bytes]:
    """The lines with further features, in blocks.

    Args:
        lines: of the list.
        sources: the source sentences, by the number in field 1.
        features: what to add, in this order.
        name: of the list, for messages.
        report: is filled in.

    Raises:
        FormatError: a sentence number without a source sentence, or no segmentation where one is needed.
        MosesRnnError: a score is not finite.
    """
    report.choosing = {feature.label: False for feature in features}
    for together in _sentences_together(lines, report):
        for line in together:
            if line.sentence >= len(sources):
                expected = f"a sentence number below {len(sources)}, the number of source sentences"
                raise FormatError(name, None, expected, str(line.sentence))
        read = [sources[line.sentence] for line in together]
        columns = [(feature.label, _finite(feature, together, read)) for feature in features]
        _note_choices(together, columns, report)
        texts = [(label, [[b"%.6g" % value for value in row] for row in scores.tolist()]) for label, scores in columns]
        yield b"".join(
            line.with_features([(label, rows[i]) for label, rows in texts]) for i, line in enumerate(together)
        )


def _sentences_together(lines: Iterable[NBestLine], report: NBestReport) -> Iterator[list[NBestLine]]:
    """Many lines at once, parted between sentences."""
    group: list[NBestLine] = []
    for line in lines:
        if not group or line.sentence != group[-1].sentence:
            if len(group) >= LINES:
                yield group
                group = []
            report.sentences += 1
        group.append(line)
        report.lines += 1
    if group:
        yield group


def _finite(feature: NBestFeature, lines: Sequence[NBestLine], sources: Phrases) -> Scores:
    scores = feature.scorer.scores(lines, sources)
    bad = np.flatnonzero(~np.isfinite(scores).all(1))
    if len(bad):
        line = lines[int(bad[0])]
        raise MosesRnnError(
            f"{feature.label}: expected finite scores, found {scores[bad[0]]} for {shown(line.hypothesis)}"
        )
    return scores


def _note_choices(
    lines: Sequence[NBestLine], columns: Sequence[tuple[str, npt.NDArray[np.float64]]], report: NBestReport
) -> None:
    same_sentence = np.array([line.sentence for line in lines])
    same_sentence = same_sentence[1:] == same_sentence[:-1]
    for label, scores in columns:
        report.choosing[label] |= bool((np.diff(scores, axis=0).any(1) & same_sentence).any())
