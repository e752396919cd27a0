"""What a scoring run is given, and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from moses_rnn.files.shards import Shard
from moses_rnn.moses.ini_editing import IniEdit
from moses_rnn.scoring.phrase_tables import ScoringReport
from moses_rnn.scoring.workers import ColumnOptions


@dataclass(frozen=True)
class ScoringRequest:
    """All choices of a run.

    `rejects` is where invalid lines go; without it the first one ends the run.
    """

    table: str
    output: str
    models: tuple[Path, ...]
    inverse_models: tuple[Path, ...] = ()
    word_penalty: bool = False
    columns: ColumnOptions = field(default_factory=ColumnOptions)
    ini: IniEdit | None = None
    devices: tuple[str, ...] = ("cpu",)
    threads: int | None = None  # of the processor; None: all cores
    shard: Shard | None = None  # the only part of the table that is scored
    ray: str | None = None  # address of the cluster that scores; None: threads of this process
    precision: str | None = None  # of matrix products, see `Wanted`
    floors_long: bool = False  # whether phrases that a network has no room for score the floor, see `Compute`
    force: bool = False
    resume: bool = False
    allow_misfit: bool = False  # score with a model that does not fit the table, see `fit`
    again: bool = False  # score a table that has a column of this name already
    rejects: str | None = None

    @property
    def folders(self) -> tuple[Path, ...]:
        """Of all models, in the order of their columns."""
        return (*self.models, *self.inverse_models)

    @property
    def added_columns(self) -> int:
        """How many scores each line gets."""
        each_way = map(len, (self.models, self.inverse_models))
        return self.word_penalty + sum(min(count, 1) if self.columns.averaged else count for count in each_way)


def rejects_of(output: str) -> str:
    """Where the lines go that are left out of a table."""
    return output + ".rejects"


@dataclass(frozen=True)
class ScoringResult:
    """What a run made: its report, the lines that a moses.ini needs, and what the user should know."""

    report: ScoringReport
    feature_line: str
    weight_line: str
    column_names: tuple[str, ...]
    rejected: int
    warnings: tuple[str, ...]
    computed_by: str  # the native core or torch, and in which precision
