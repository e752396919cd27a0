"""N-best lists in, the same lists with further features out, each the sum of a producer's scores of its parts."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from moses_rnn.errors import FormatError, InputError, MisfitError, placing
from moses_rnn.formats.nbest import NAME, NBestLine, check_plain, check_source
from moses_rnn.formats.phrase_forms import words
from moses_rnn.producers.base import Phrases
from moses_rnn.scoring.hypotheses import Feature

LINES = 20_000  # hypotheses scored together; a sentence's list is never parted
# Share of words outside a shortlist from which on the model is another list's. A table is refused by its pairs
# (formats/signatures), of which 0.8 have such a word where about a fourth of the words are unknown; shortlists of real
# systems cover nine words of ten.
UNKNOWN_REFUSAL = 0.5

Texts = list[bytes]  # the values of a feature, as they are written


Labelled = tuple[str, Feature]  # a feature to be added, behind its label


@dataclass
class NBestReport:
    """What was added: counts for the user, and whether a feature can choose anything.

    `whole` is whether the list has all sentences, not those of a shard; `allow_misfit` is whether a model may know
    almost none of the list's words.
    """

    whole: bool = True
    allow_misfit: bool = False
    lines: int = 0
    unknown: dict[str, float] = field(default_factory=dict)  # by label: share of words outside, see `ListWords`
    choosing: dict[str, bool] = field(default_factory=dict)  # by label: whether it differs within a sentence's list
    firsts: dict[int, dict[str, Texts]] = field(default_factory=dict)  # values of a sentence's first hypothesis

    @property
    def sentences(self) -> int:
        """How many sentences have hypotheses."""
        return len(self.firsts)

    @property
    def constant(self) -> list[str]:
        """The features that no tuning can use."""
        return [label for label, chooses in self.choosing.items() if not chooses]


def label_features(first: NBestLine | None, named: Iterable[tuple[str, Feature]]) -> list[Labelled]:
    """Features with the next free number in their labels: CSLM0, or CSLM1 if the list has a CSLM0."""
    taken = (
        {word[:-1].decode("ascii", "replace") for word in words(first.features) if word.endswith(b"=")}
        if first
        else set()
    )
    features: list[Labelled] = []
    for name, feature in named:
        label = next(label for n in itertools.count() if (label := f"{name}{n}") not in taken)
        assert NAME.fullmatch(label)
        taken.add(label)
        features.append((label, feature))
    return features


class ListWords:
    """Counts the words of a list that models do not know.

    Args:
        name: of the list.
        features: that are added.
        report: gets the share of unknown words of each feature.
    """

    def __init__(self, name: str, features: Sequence[Labelled], report: NBestReport) -> None:
        self._name, self._features, self._report = name, features, report
        self._sources: Counter[bytes] = Counter()  # words of the source sentences, once for each hypothesis
        self._targets: Counter[bytes] = Counter()

    def add(self, lines: Sequence[NBestLine], sources: Phrases) -> None:
        """Count some lines, each with its source sentence.

        Raises:
            MisfitError: a model does not know most of the words so far.
        """
        for source, line in zip(sources, lines, strict=True):
            self._sources.update(words(source))
            self._targets.update(words(line.hypothesis))
        for label, feature in self._features:
            if feature.known.target:
                self._report.unknown[label] = self._judge(label, "hypothesis", self._targets, feature.known.target)
            if feature.known.source:
                self._judge(label, "source", self._sources, feature.known.source)

    def _judge(self, label: str, side: str, counts: Counter[bytes], knows: Callable[[bytes], bool]) -> float:
        """The share of words that a model does not know."""
        share = sum(count for word, count in counts.items() if not knows(word)) / max(counts.total(), 1)
        if share > UNKNOWN_REFUSAL and not self._report.allow_misfit:
            raise MisfitError(
                f"{self._name}: expected a list that {label}'s model knows, found {share:.1%} of the {side} words "
                "outside its shortlist",
                advice=(
                    "Was the model trained on another language or tokenisation?\n"
                    "Use --allow-misfit to score with it anyway."
                ),
            )
        return share


def with_features(
    lines: Iterable[NBestLine],
    sources: Sequence[bytes] | None,
    features: Sequence[Labelled],
    name: str,
    report: NBestReport,
) -> Iterator[bytes]:
    """The lines with further features, in blocks.

    Args:
        lines: of the list.
        sources: the source sentences, by the number in field 1; None where no feature is of sources.
        features: what to add, in this order.
        name: of the list, for messages.
        report: is filled in.

    Raises:
        FormatError: a hypothesis that is not plain words, a sentence without a source sentence or with another one, or
            no segmentation where one is needed.
        InputError: there are source sentences behind the list's last one, and a feature is of both.
        MisfitError: a model does not know most of the list's words.
        ScoreError: a model gives a line no number.
    """
    report.choosing = dict.fromkeys((label for label, _ in features), False)
    of_sources = any(feature.of_sources for _, feature in features)
    list_words = ListWords(name, features, report)
    for together in _sentences_together(lines):
        read = _sources_of(together, sources, name, check=of_sources)
        list_words.add(together, read)
        texts = {label: _texts(label, feature, together, read) for label, feature in features}
        _note(together, texts, report)
        yield b"".join(
            line.with_features([(label, rows[i]) for label, rows in texts.items()]) for i, line in enumerate(together)
        )
    if of_sources and sources is not None and report.whole:
        _check_end(sources, name, report)


def _texts(label: str, feature: Feature, lines: Sequence[NBestLine], sources: Phrases) -> list[Texts]:
    """A feature's values of lines, as they are written."""
    with placing(lambda row: f"{label}, line {lines[row].number:,} of the list"):
        scores = feature.scores(lines, sources)
    return [[b"%.6g" % value for value in row] for row in scores.tolist()]


def _sources_of(lines: Sequence[NBestLine], sources: Sequence[bytes] | None, name: str, *, check: bool) -> Phrases:
    """The source sentence of each line."""
    for line in lines:
        check_plain(line, name)
        if sources is None:
            continue
        if line.sentence >= len(sources):
            expected = f"a sentence number below {len(sources)}, the number of source sentences"
            raise FormatError(name, line.number, expected, str(line.sentence))
        if check:
            check_source(line, sources[line.sentence], name)
    return [b"" if sources is None else sources[line.sentence] for line in lines]


def _check_end(sources: Sequence[bytes], name: str, report: NBestReport) -> None:
    last = max(report.firsts, default=len(sources) - 1)
    if last + 1 != len(sources):
        raise InputError(
            f"{name}: expected as many sentences as there are source sentences, {len(sources):,}, found {last + 1:,}",
            advice="--source is the text that the list's sentences were translated from, line by line.",
        )


def _sentences_together(lines: Iterable[NBestLine]) -> Iterator[list[NBestLine]]:
    """Many lines at once, parted between sentences."""
    group: list[NBestLine] = []
    for line in lines:
        if len(group) >= LINES and line.sentence != group[-1].sentence:
            yield group
            group = []
        group.append(line)
    if group:
        yield group


def _note(lines: Sequence[NBestLine], texts: Mapping[str, Sequence[Texts]], report: NBestReport) -> None:
    """Compare the values of each line with those of its sentence's first one; a sentence's lines may lie apart."""
    report.lines += len(lines)
    for i, line in enumerate(lines):
        values = {label: rows[i] for label, rows in texts.items()}
        for label, first in report.firsts.setdefault(line.sentence, values).items():
            report.choosing[label] |= values[label] != first
