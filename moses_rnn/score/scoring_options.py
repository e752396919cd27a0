"""The options of scoring a table, as the command fills them in; --help needs no torch."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated

from moses_rnn.files.outputs import names_file
from moses_rnn.files.shards import Shard, parse_shard, with_shard
from moses_rnn.files.streams import STANDARD_STREAM, find_input, is_gzip, without_compression_suffix
from moses_rnn.options import (
    FIRST_SECTION,
    AllowMisfit,
    Force,
    LongPhrases,
    Option,
    PretrainedOptions,
    Ray,
    Resume,
    Section,
    Threads,
)
from moses_rnn.table.phrase_table import DEFAULT_FLOOR
from moses_rnn.table.tab_separated import TableFormat


@dataclass(frozen=True, kw_only=True)
class ScoringOptions(PretrainedOptions):
    """All options of a run; the command line uses the same names.

    The default of `new_table` is ``phrase-table.rnn.gz`` beside the table, or standard output if the table comes from
    standard input. Both may be named without .gz.
    """

    phrase_table: Annotated[str, Section(FIRST_SECTION)]
    models: Annotated[
        tuple[Path, ...],
        Option(
            "Model folder, or a pretrained model (hf:FOLDER or hf:NAME); repeat it for several (see --combine) "
            "[default: the one beside the table]",
            "--model",
            metavar="FOLDER",
        ),
    ] = ()
    new_table: Annotated[
        str | None,
        Option("Same as NEW_TABLE; - is stdout [default: phrase-table.rnn.gz for phrase-table.gz]", "-o --output"),
    ] = None
    moses_ini: Annotated[str | None, Option("Also write a copy of this moses.ini that loads the new table")] = None
    device: Annotated[str, Option("cpu, cuda, or several: cuda:0,cuda:1")] = "auto"
    threads: Threads = None
    resume: Resume = False
    force: Force = False

    inverse_models: Annotated[
        tuple[Path, ...],
        Section("Columns"),
        Option(
            "Add p(source | target) of a model from moses-rnn-train --inverse; repeat it for several",
            "--inverse-model",
        ),
    ] = ()
    combine: Annotated[
        str | None,
        Option(
            "How to add several models of one direction: as the mean of their log p, or as one column each [default: "
            "mean-log]",
            choices=("mean-log", "columns"),
        ),
    ] = None
    word_penalty: Annotated[bool, Option("Add exp(-n) for n target words outside the shortlist")] = False
    floor: Annotated[
        float,
        Option("Lowest log p to write; below -87, float32, and so Moses, loses precision", max=0),
    ] = DEFAULT_FLOOR
    output_ini: Annotated[
        str | None,
        Option("File for the new ini [default: moses.rnn.ini for moses.ini, beside the new table]"),
    ] = None

    layout: Annotated[TableFormat, Section("Unusual tables and models")] = "moses"
    on_bad_line: Annotated[
        str,
        Option(
            "On a bad line: end the run, or write the line to NEW_TABLE.rejects",
            choices=("error", "skip"),
        ),
    ] = "error"
    long_phrases: LongPhrases = "refuse"
    allow_misfit: AllowMisfit = False
    again: Annotated[bool, Option("Add a column even if the table already has one of that name")] = False

    precision: Annotated[
        str | None,
        Section("Run"),
        Option(
            "Precision of matrix products; bf16 is faster on processors that support it; auto uses it there for large "
            "networks [default: fp32]",
            choices=("auto", "fp32", "bf16"),
        ),
    ] = None
    ray: Ray = None
    shard: Annotated[
        Shard | None, Option("Process only part k of N of the lines", metavar="k/N", parse=parse_shard)
    ] = None

    @cached_property
    def table(self) -> str:
        """The file that is read, including .gz."""
        return find_input(self.phrase_table)

    @cached_property
    def output(self) -> str:
        """The new table; .gz is added if the old table was named without it."""
        if not self.new_table and self.table == STANDARD_STREAM:
            return STANDARD_STREAM
        if not self.new_table:
            stem = without_compression_suffix(self.table)
            output = str(stem.with_name(stem.name + ".rnn.gz"))
            return output if self.shard is None else with_shard(output, self.shard)
        adds_suffix = self.new_table != STANDARD_STREAM and self.table == f"{self.phrase_table}.gz"
        adds_suffix &= names_file(self.new_table) and not is_gzip(self.new_table)
        return f"{self.new_table}.gz" if adds_suffix else self.new_table

    @property
    def signature(self) -> str | None:
        """The file beside the new table; None for standard output."""
        return None if self.output == STANDARD_STREAM else f"{self.output}.json"

    @property
    def rejects(self) -> str | None:
        """The file for invalid lines; None: the first one ends the run."""
        return rejects_of(self.output) if self.on_bad_line == "skip" else None

    @property
    def new_ini(self) -> str | None:
        """The extended ini."""
        if not self.moses_ini:
            return None
        return self.output_ini or str(Path(self.output).parent / (Path(self.moses_ini).stem + ".rnn.ini"))

    @property
    def devices(self) -> tuple[str, ...]:
        """Where to compute."""
        return tuple(self.device.split(","))


def training_command(table: str, *options: str) -> str:
    """Return the command that trains a model of a table, as advice; a table from a pipe has no name for it."""
    named = table != STANDARD_STREAM and (Path(table).is_file() or not Path(table).exists())
    return shlex.join(["moses-rnn-train", table if named else "TABLE", *options])


def rejects_of(output: str) -> str:
    """Return the path of the file for a table's rejected lines."""
    return output + ".rejects"
