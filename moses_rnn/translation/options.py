"""What `moses-rnn nmt translate` and `moses-rnn extend` are asked for; nothing here needs torch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from moses_rnn.files.streams import find_input, without_compression_suffix

# What becomes of a word that a network cannot write
NO, NEVER, COPY, DICTIONARY, LOWERCASE = RULES = "no", "never", "copy", "dictionary", "lowercase"
WITH_LEXICON = DICTIONARY, LOWERCASE


@dataclass(frozen=True, kw_only=True)
class TranslationRequest:
    """A text to translate, how, and what to write."""

    input: str
    models: tuple[Path, ...]  # folders
    beam: int
    length_score: Literal["sum", "mean"]
    unknown: str | None  # one of RULES
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


@dataclass(frozen=True, kw_only=True)
class ExtensionRequest:
    """A table to extend, by which networks, and what to write."""

    phrase_table: str
    model: Path
    output: str | None
    fewer_than: int | None  # targets of sources of the table that are extended; None: such are not
    text: str | None
    longest: int  # words of a source
    top: int  # new targets of a source, at most
    min_log_prob: float
    inverse_model: Path | None
    provenance: str
    moses_ini: str | None
    allow_misfit: bool
    device: str
    threads: int | None
    force: bool
    quiet: bool

    @property
    def table(self) -> str:
        """The table's file."""
        return find_input(self.phrase_table)

    @property
    def new_table(self) -> str:
        """Where the new table goes."""
        stem = without_compression_suffix(self.table)
        return self.output or str(stem.with_name(stem.name + ".extended.gz"))

    @property
    def new_ini(self) -> str | None:
        """Where the new ini goes, if one is made."""
        return self.moses_ini and str(Path(self.new_table).parent / (Path(self.moses_ini).stem + ".extended.ini"))

    @property
    def marks(self) -> bool:
        """Whether a column says which lines are new."""
        return self.provenance == "column"
