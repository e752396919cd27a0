"""What an extension is asked for, and what it gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from moses_rnn.files.streams import MAX_LINE_BYTES
from moses_rnn.producers.open import OpenModel
from moses_rnn.translation.beam_search import BeamConfig
from moses_rnn.translation.extension.columns import Fill
from moses_rnn.translation.extension.new_lines import Counts, Limits
from moses_rnn.translation.extension.sources import TextPhrases


@dataclass(frozen=True, kw_only=True)
class ExtensionRequest:
    """All choices of a run.

    `signature` is the one beside the table, if it is of this very file; `ini` is where the new ini goes, if one is made
    (from `ini_inputs`).
    """

    table: str
    output: str
    model: OpenModel
    inverse: OpenModel | None = None
    fewer_than: int = 0  # targets that a source of the table has; 0: such are not extended
    text: str | None = None
    longest: int = 7  # words of a source
    beam: int = 12  # prefixes of a source
    most_words: int = 10  # of a target
    limits: Limits
    fills: Mapping[int, Fill] = field(default_factory=dict)  # of columns from 1
    provenance: bool = False
    signature: Mapping[str, Any] | None = None
    ini: str | None = None
    ini_inputs: tuple[str, ...] = ()
    device: str = "cpu"
    force: bool = False
    strict: bool = False
    max_line_bytes: int = MAX_LINE_BYTES

    @property
    def beam_config(self) -> BeamConfig:
        """The search, which gives as many targets as are wanted if all that the table has are among them."""
        best = self.limits.top + max(self.fewer_than - 1, 0)
        return BeamConfig(max(self.beam, best), best, self.most_words, allow_unknown=False)

    def as_record(self) -> dict[str, Any]:
        """What decides the new lines, for the signature."""
        return {
            "fewer_than": self.fewer_than,
            "text": self.text is not None,
            "longest": self.longest,
            "beam": self.beam_config.width,
            "top": self.limits.top,
            "min_log_prob": self.limits.least_log_prob,
            "max_words": self.most_words,
        }


@dataclass(frozen=True)
class Extended:
    """What came of a table.

    `unknown_sources` have few targets and a word that the network does not know; `fills` say what stands in each column
    of the new lines; `warnings` are what the user should know.
    """

    lines_before: int
    counts: Counts
    unknown_sources: int
    text: TextPhrases
    fills: tuple[Fill, ...]
    warnings: tuple[str, ...]

    @property
    def lines(self) -> int:
        """Of the new table."""
        return self.lines_before + self.counts.lines
