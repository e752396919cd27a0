"""Add features to n-best lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from moses_rnn.errors import FormatError, InputError, MisfitError
from moses_rnn.models.base import score_named
from moses_rnn.moses.nbest import NBestLine, beyond_text, check_plain, check_source
from moses_rnn.nbest.features import Feature, Knows
from moses_rnn.table.phrases import words
from moses_rnn.table.signatures import free_name
from moses_rnn.table.table_blocks import Phrases

LINES = 20_000  # minimum hypotheses scored together; a sentence's list is never split
FEW_LINES = 1_000  # the same if a feature is slow
# Share of words outside a shortlist above which the model does not fit the list. A table is rejected by its share of
# pairs with such a word (table/signatures): 0.8 when about a quarter of the words are unknown. Shortlists of real
# systems cover nine words in ten.
UNKNOWN_REFUSAL = 0.5


def check_known(expected: str, label: str, side: str, counts: Counter[bytes], knows: Knows, *, allowed: bool) -> float:
    """Return the share of a side's words that a model does not know; raise MisfitError for most of them."""
    share = sum(count for word, count in counts.items() if not knows(word)) / max(counts.total(), 1)
    if share > UNKNOWN_REFUSAL and not allowed:
        raise MisfitError(
            f"{expected} that {label}'s model knows, found {share:.1%} of the {side} words outside its shortlist",
            advice=(
                "Was the model trained on another language or tokenisation?\n"
                "Use --allow-misfit to score with it anyway."
            ),
        )
    return share


def label_features(first: NBestLine | None, named: Iterable[tuple[str, Feature]]) -> dict[str, Feature]:
    """Label features with the next free number: CSLM0, or CSLM1 if the list has a CSLM0."""
    taken = [label for label, _ in first.labels()] if first else []
    features: dict[str, Feature] = {}
    for name, feature in named:
        features[free_name(name, [*taken, *features], first="0")] = feature
    return features


def readers_of(features: Mapping[str, Feature]) -> list[str]:
    """Return the labels of features that need the source sentences."""
    return [label for label, feature in features.items() if feature.of_sources]


@dataclass
class ListFeatures:
    """Adds features to a list and collects statistics about them.

    `sources` are the source sentences, indexed by field 1; None if no feature needs them. `features` are by label. A
    list that `has_end` must reach the last source sentence.
    """

    name: str
    sources: Sequence[bytes] | None
    features: dict[str, Feature]
    has_end: bool = True
    allow_misfit: bool = False
    lines: int = 0
    unknown: dict[str, float] = field(default_factory=dict)  # by label: share of the hypotheses' words

    def __post_init__(self) -> None:
        self._choosing: set[str] = set()  # labels of features whose values differ within a sentence
        self._firsts: dict[int, dict[str, bytes]] = {}  # values of each sentence's first hypothesis
        self._words: tuple[Counter[bytes], Counter[bytes]] = Counter(), Counter()  # sources (per hypothesis), targets

    @property
    def sentences(self) -> int:
        """Number of sentences with hypotheses."""
        return len(self._firsts)

    @property
    def constant(self) -> list[str]:
        """Labels of features that are constant within each sentence, which tuning cannot use."""
        return [label for label in self.features if label not in self._choosing]

    @property
    def _of_sources(self) -> bool:
        return bool(readers_of(self.features))

    def add(self, lines: Iterable[NBestLine]) -> Iterator[bytes]:
        """Yield the lines of the list with their features, in blocks."""
        is_slow = any(feature.is_slow for feature in self.features.values())
        for together in _sentences_together(lines, FEW_LINES if is_slow else LINES):
            sources = [self._source_of(line) for line in together]
            self._check_words(together, sources)
            self._check_labels(together)
            texts = {label: self._texts(label, together, sources) for label in self.features}
            self._note(together, texts)
            yield b"".join(
                line.with_features([(label, [values[i]]) for label, values in texts.items()])
                for i, line in enumerate(together)
            )
        last = max(self._firsts) if self._firsts else len(self.sources or ()) - 1
        if self._of_sources and self.sources is not None and self.has_end and last + 1 != len(self.sources):
            expected = f"as many sentences as the source has, {len(self.sources):,}"
            raise InputError(
                f"{self.name}: expected {expected}, found {last + 1:,}",
                advice="--source must be the text that the decoder translated, line by line.",
            )

    def _source_of(self, line: NBestLine) -> bytes:
        check_plain(line, self.name)
        if self.sources is None:
            return b""
        if line.sentence >= len(self.sources):
            raise beyond_text(line, self.name, "--source", len(self.sources))
        if self._of_sources:
            check_source(line, self.sources[line.sentence], self.name)
        return self.sources[line.sentence]

    def _check_words(self, lines: Sequence[NBestLine], sources: Phrases) -> None:
        """Count the words, and raise MisfitError if a model does not know most of the words so far."""
        of_sources, of_targets = self._words
        for source, line in zip(sources, lines, strict=True):
            of_sources.update(words(source))
            of_targets.update(words(line.hypothesis))
        for label, feature in self.features.items():
            if feature.knows_target:
                self.unknown[label] = self._judge(label, "hypothesis", of_targets, feature.knows_target)
            if feature.knows_source:
                self._judge(label, "source", of_sources, feature.knows_source)

    def _check_labels(self, lines: Sequence[NBestLine]) -> None:
        """Raise FormatError if a line already has a new feature, which the first line lacks."""
        added = {f"{label}=".encode() for label in self.features}
        for line in lines:
            if taken := added.intersection(words(line.features)):
                raise FormatError(
                    self.name, line.number, "the features of the first line", f"also {min(taken).decode()}"
                )

    def _judge(self, label: str, side: str, counts: Counter[bytes], knows: Knows) -> float:
        return check_known(f"{self.name}: expected a list", label, side, counts, knows, allowed=self.allow_misfit)

    def _texts(self, label: str, lines: Sequence[NBestLine], sources: Phrases) -> list[bytes]:
        """Return a feature's values for the lines, formatted."""
        feature = self.features[label]
        scores = score_named(
            len(lines),
            lambda part: feature.scores(lines[part], sources[part], self.name),
            lambda row: f"{label}, line {lines[row].number:,} of the list",
        )
        return [b"%.6g" % value for value in (scores + 0.0).tolist()]  # + 0.0: no -0

    def _note(self, lines: Sequence[NBestLine], texts: dict[str, list[bytes]]) -> None:
        """Compare each line's values with its sentence's first line; a sentence's lines need not be adjacent."""
        self.lines += len(lines)
        for i, line in enumerate(lines):
            values = {label: column[i] for label, column in texts.items()}
            first = self._firsts.setdefault(line.sentence, values)
            self._choosing |= {label for label in values if values[label] != first[label]}


def _sentences_together(lines: Iterable[NBestLine], least: int) -> Iterator[list[NBestLine]]:
    """Yield groups of at least `least` lines, split only between sentences."""
    group: list[NBestLine] = []
    for line in lines:
        if len(group) >= least and line.sentence != group[-1].sentence:
            yield group
            group = []
        group.append(line)
    if group:
        yield group
