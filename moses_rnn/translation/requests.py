"""The options of `moses-rnn nmt translate` and `moses-rnn extend`; nothing here needs torch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from moses_rnn.files.streams import STANDARD_STREAM, find_input, without_compression_suffix
from moses_rnn.options import Device, Force, ModelBeside, ModelFolders, Option, Output, Quiet, Resume, Threads

BEAM = 12  # live prefixes of a source, as in the papers
WORDS_PER_SOURCE_WORD = 3  # and for its </s>: the longest translation
LengthScore = Literal["mean", "sum"]
# Handling of words that a network cannot write
NO, NEVER, COPY, DICTIONARY, LOWERCASE = RULES = "no", "never", "copy", "dictionary", "lowercase"
WITH_LEXICON = DICTIONARY, LOWERCASE


@dataclass(frozen=True, kw_only=True)
class TranslationRequest:
    """The options of a translation."""

    input: str = STANDARD_STREAM
    models: ModelFolders
    beam: Annotated[int, Option("Beam width; 1 is greedy search", min=1)] = BEAM
    length_score: Annotated[
        LengthScore,
        Option("Rank translations by log p per word, as the released code of RNNsearch does, or by log p"),
    ] = "mean"
    unknown: Annotated[
        str | None,
        Option(
            "How to replace an unknown word: no: keep <unk>; never: the likeliest known word; copy: the source word "
            "that the network looks at or points to; dictionary: that word's translation in --dictionary; lowercase: "
            "the same, for lower-case words only [default: no; for a model trained with --rare: dictionary, or copy "
            "without one]",
            choices=RULES,
        ),
    ] = None
    dictionary: Annotated[
        str | None, Option("Word translations, one per line: source target p(target | source)", metavar="FILE")
    ] = None
    candidates: Annotated[
        tuple[int, int] | None,
        Option(
            "Use only the K most frequent words and the L likeliest translations of each source word",
            metavar="K L",
            min=0,
        ),
    ] = None
    n_best: Annotated[
        tuple[int, str] | None,
        Option("Write the K best translations of each line, as Moses does", metavar="K FILE", min=1),
    ] = None
    alignments: Annotated[
        str | None, Option("Write where a network with attention looks, as JSON lines", metavar="FILE")
    ] = None
    max_words_factor: Annotated[
        int, Option("Maximum words of a translation per source word, the end symbol included", min=1)
    ] = WORDS_PER_SOURCE_WORD
    resume: Resume = False
    output: Output = "-"
    device: Device = "auto"
    threads: Threads = None
    force: Force = False
    quiet: Quiet = False

    @property
    def text(self) -> str:
        """The file to translate."""
        return find_input(self.input)

    @property
    def others(self) -> list[str]:
        """The outputs besides the translation."""
        return [path for path in (self.n_best and self.n_best[1], self.alignments) if path]


@dataclass(frozen=True, kw_only=True)
class ExtensionRequest:
    """The options of an extension."""

    phrase_table: str
    model: ModelBeside = None
    output: Annotated[
        str | None, Option("New table [default: phrase-table.extended.gz for phrase-table.gz]", "-o --output")
    ] = None
    text: Annotated[
        str, Option("Add phrases of this text that the table lacks; one sentence per line, tokenised like the table")
    ]
    longest: Annotated[int, Option("Maximum words per source", min=1)] = 7
    top: Annotated[int, Option("Maximum new targets per source", min=1)] = 3
    min_log_prob: Annotated[
        float, Option("Minimum log p(target | source), natural, with the end symbols of both sides", max=0)
    ] = -0.7
    inverse_model: Annotated[Path | None, Option("Model from moses-rnn-train --inverse, for p(source | target)")] = None
    moses_ini: Annotated[
        str | None, Option("Also write, beside the new table, a copy of this moses.ini that loads it")
    ] = None
    allow_misfit: Annotated[bool, Option("Accept a model that has learned nothing")] = False
    device: Device = "auto"
    threads: Threads = None
    force: Force = False
    quiet: Quiet = False

    @property
    def table(self) -> str:
        """The table's file."""
        return find_input(self.phrase_table)

    @property
    def new_table(self) -> str:
        """Path of the new table."""
        stem = without_compression_suffix(self.table)
        return self.output or str(stem.with_name(stem.name + ".extended.gz"))

    @property
    def new_ini(self) -> str | None:
        """Path of the new ini, if any."""
        return self.moses_ini and str(Path(self.new_table).parent / (Path(self.moses_ini).stem + ".extended.ini"))
