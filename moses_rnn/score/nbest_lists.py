"""N-best lists in, the same lists with further features out."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from moses_rnn.errors import FormatError, InputError, MisfitError, placing
from moses_rnn.moses.nbest import NAME, NBestLine, check_plain, check_source
from moses_rnn.score.nbest_features import Feature, Knows
from moses_rnn.table.phrase_table import words
from moses_rnn.table.table_blocks import Phrases

LINES = 20_000  # hypotheses scored together; a sentence's list is never parted
# Share of words outside a shortlist from which on the model is another list's. A table is refused by its pairs
# (table/signatures), of which 0.8 have such a word where about a fourth of the words are unknown; shortlists of real
# systems cover nine words of ten.
UNKNOWN_REFUSAL = 0.5


def label_features(first: NBestLine | None, named: Iterable[tuple[str, Feature]]) -> dict[str, Feature]:
    """Features by label, with the next free number: CSLM0, or CSLM1 if the list has a CSLM0."""
    taken = {label for label, _ in first.labels()} if first else set()
    features: dict[str, Feature] = {}
    for name, feature in named:
        label = next(label for n in itertools.count() if (label := f"{name}{n}") not in taken)
        assert NAME.fullmatch(label)
        taken.add(label)
        features[label] = feature
    return features


@dataclass
class ListFeatures:
    """Adds features to a list, and counts what the user should know of them.

    `sources` are the source sentences, by the number in field 1; None where no feature is of sources. `features` are by
    label. The list is `whole` if it has all sentences, not those of a shard.
    """

    name: str
    sources: Sequence[bytes] | None
    features: dict[str, Feature]
    whole: bool = True
    allow_misfit: bool = False
    lines: int = 0
    unknown: dict[str, float] = field(default_factory=dict)  # by label: share of the hypotheses' words
    choosing: dict[str, bool] = field(default_factory=dict)  # by label: whether it differs within a sentence's list

    def __post_init__(self) -> None:
        self.choosing = dict.fromkeys(self.features, False)
        self._firsts: dict[int, dict[str, bytes]] = {}  # values of a sentence's first hypothesis
        self._words: tuple[Counter[bytes], Counter[bytes]] = Counter(), Counter()  # of sources, once a hypothesis each

    @property
    def sentences(self) -> int:
        """How many sentences have hypotheses."""
        return len(self._firsts)

    @property
    def constant(self) -> list[str]:
        """The features that no tuning can use."""
        return [label for label, chooses in self.choosing.items() if not chooses]

    @property
    def _of_sources(self) -> bool:
        return any(feature.of_sources for feature in self.features.values())

    def add(self, lines: Iterable[NBestLine]) -> Iterator[bytes]:
        """The lines of the list with their features, in blocks."""
        for together in _sentences_together(lines):
            sources = [self._source_of(line) for line in together]
            self._check_words(together, sources)
            texts = {label: self._texts(label, together, sources) for label in self.features}
            self._note(together, texts)
            yield b"".join(
                line.with_features([(label, [values[i]]) for label, values in texts.items()])
                for i, line in enumerate(together)
            )
        last = max(self._firsts, default=len(self.sources or ()) - 1)
        if self._of_sources and self.sources is not None and self.whole and last + 1 != len(self.sources):
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
            expected = f"a sentence number below {len(self.sources)}, the number of source sentences"
            raise FormatError(self.name, line.number, expected, str(line.sentence))
        if self._of_sources:
            check_source(line, self.sources[line.sentence], self.name)
        return self.sources[line.sentence]

    def _check_words(self, lines: Sequence[NBestLine], sources: Phrases) -> None:
        """Count the words so far, and refuse a model that does not know most of them."""
        of_sources, of_targets = self._words
        for source, line in zip(sources, lines, strict=True):
            of_sources.update(words(source))
            of_targets.update(words(line.hypothesis))
        for label, feature in self.features.items():
            if feature.knows_target:
                self.unknown[label] = self._judge(label, "hypothesis", of_targets, feature.knows_target)
            if feature.knows_source:
                self._judge(label, "source", of_sources, feature.knows_source)

    def _judge(self, label: str, side: str, counts: Counter[bytes], knows: Knows) -> float:
        """The share of words that a model does not know."""
        share = sum(count for word, count in counts.items() if not knows(word)) / max(counts.total(), 1)
        if share > UNKNOWN_REFUSAL and not self.allow_misfit:
            raise MisfitError(
                f"{self.name}: expected a list that {label}'s model knows, found {share:.1%} of the {side} words "
                "outside its shortlist",
                advice=(
                    "Was the model trained on another language or tokenisation?\n"
                    "Use --allow-misfit to score with it anyway."
                ),
            )
        return share

    def _texts(self, label: str, lines: Sequence[NBestLine], sources: Phrases) -> list[bytes]:
        """A feature's values of lines, as they are written."""
        with placing(lambda row: f"{label}, line {lines[row].number:,} of the list"):
            scores = self.features[label].scores(lines, sources, self.name)
        return [b"%.6g" % value for value in scores.tolist()]

    def _note(self, lines: Sequence[NBestLine], texts: dict[str, list[bytes]]) -> None:
        """Compare the values of each line with those of its sentence's first one; a sentence's lines may lie apart."""
        self.lines += len(lines)
        for i, line in enumerate(lines):
            values = {label: column[i] for label, column in texts.items()}
            for label, first in self._firsts.setdefault(line.sentence, values).items():
                self.choosing[label] |= values[label] != first


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
