"""What the pipeline leaves of each tuned system: weights, translations, and the phrase pairs they are made of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from moses_rnn.errors import InputError
from moses_rnn.formats.systems import read_systems
from moses_rnn.moses.ini import MosesIni

DEV = "dev"
SPAN = re.compile(r"\|([0-9]+)-([0-9]+)\|")
FIRST_ROUND = b"# We were before running iteration 1"  # of whose weights mert-moses.pl made a tuned ini


class Chosen(NamedTuple):
    """A phrase pair as the decoder used it: source words from `first` to `last` of a sentence became `target`."""

    sentence: int
    first: int
    last: int
    target: str


@dataclass(frozen=True)
class Run:
    """One tuning of one system and what it translated."""

    system: str
    seed: str
    hypotheses: Mapping[str, list[str]]  # by set
    weights: Mapping[str, list[float]] = field(default_factory=dict)  # a network that translates by itself has none
    on_lists: bool = False  # whether features were added to n-best lists, not to the decoder
    phrases: frozenset[tuple[str, Chosen]] | None = None  # None: a network that translates by itself has none
    is_untuned: bool = False  # whether no round of tuning was better on dev than the weights that it began with


@dataclass(frozen=True)
class Place:
    """Where the pipeline left everything; `target` is the target language's suffix, `tests` are the test sets."""

    folder: Path
    target: str
    tests: tuple[str, ...] = ("test",)

    @property
    def sets(self) -> tuple[str, ...]:
        """All sets, the one that systems are tuned on first."""
        return DEV, *self.tests

    def references(self, name: str) -> list[str]:
        """The reference translations of a set."""
        return lines_of(self.folder / "corpus" / f"{name}.{self.target}")

    def hypotheses(self, system: str, seed: str) -> dict[str, list[str]]:
        """The translations of every set."""
        return {name: lines_of(self.folder / "decode" / f"{system}.{seed}.{name}.{self.target}") for name in self.sets}

    def phrases(self, system: str, seed: str) -> frozenset[tuple[str, Chosen]]:
        """The phrase pairs that the decoder used, with the test set of each."""
        segments = {name: lines_of(self.folder / "decode" / f"{system}.{seed}.{name}.segments") for name in self.tests}
        return frozenset((name, chosen) for name in self.tests for chosen in chosen_phrases(segments[name]))

    def run(self, system: str, seed: str) -> Run:
        """A run as the pipeline left it.

        Raises:
            InputError: a file is missing.
        """
        row = read_systems().get(system)
        if row is not None and row.kind == "self":
            return Run(system, seed, self.hypotheses(system, seed))
        path = self.folder / "tune" / f"{system}.{seed}" / "moses.ini"
        content = _read(path)
        ini = MosesIni(content, str(path))
        hypotheses, phrases = self.hypotheses(system, seed), self.phrases(system, seed)
        is_untuned = FIRST_ROUND in content.splitlines()
        return Run(system, seed, hypotheses, ini.all_weights(), not ini.has_features, phrases, is_untuned)


def chosen_phrases(lines: Sequence[str]) -> Iterator[Chosen]:
    """The phrase pairs of a translation with ``-report-segmentation``: ``target words |0-1| more |2-2|``."""
    for number, line in enumerate(lines):
        end = 0
        for span in SPAN.finditer(line):
            yield Chosen(number, int(span[1]), int(span[2]), line[end : span.start()].strip())
            end = span.end()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path}: expected a file that the pipeline made, found none") from None


def lines_of(path: Path) -> list[str]:
    """Lines of a text, parted at line feeds only."""
    return _read(path).decode("utf-8", "replace").removesuffix("\n").split("\n")
