"""What `moses-rnn nmt translate` is asked for; nothing here needs torch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from moses_rnn.files.streams import find_input


@dataclass(frozen=True, kw_only=True)
class TranslationRequest:
    """A text to translate, how, and what to write."""

    input: str
    models: tuple[Path, ...]  # folders
    beam: int
    length_score: Literal["sum", "mean"]
    unknown: str | None  # a rule of `unknown_words`
    dictionary: str | None
    candidates: tuple[int, int] | None  # most frequent words, and translations of each source word; None: all
    n_best: tuple[int, str] | None  # hypotheses of each line, and their file
    alignments: str | None
    max_words_factor: int
    output: str
    resume: bool
    device: str
    threads: int | None
    force: bool
    quiet: bool

    @property
    def text(self) -> str:
        """The file to translate."""
        return find_input(self.input)

    @property
    def others(self) -> list[str]:
        """The files beside the translation."""
        return [path for path in (self.n_best and self.n_best[1], self.alignments) if path]
