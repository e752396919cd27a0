"""What a scoring run is given: the command's options, filled in by it and by nobody else."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from moses_rnn.files.shards import Shard, with_shard
from moses_rnn.files.streams import STANDARD_STREAM, find_input, is_gzip, without_compression_suffix
from moses_rnn.table.phrase_table import DEFAULT_FLOOR


@dataclass(frozen=True, kw_only=True)
class ScoringOptions:
    """All choices of a run; those of the command line have the same names there.

    Without a `new_table` it goes beside the table as ``phrase-table.rnn.gz``, or to standard output if the table comes
    from standard input. Both may be named without .gz.
    """

    phrase_table: str
    new_table: str | None = None
    models: tuple[Path, ...] = ()
    inverse_models: tuple[Path, ...] = ()
    combine: str | None = None  # what several models of one direction add: "columns", or one column of "mean-log"
    word_penalty: bool = False
    floor: float = DEFAULT_FLOOR  # lowest log p that is written
    logarithms: bool = False  # write natural logarithms as they are, not their exponentials
    moses_ini: str | None = None  # to be extended for the new table
    output_ini: str | None = None
    device: str = "cpu"  # of torch, or several with commas between
    threads: int | None = None  # of the processor; None: all cores
    precision: str | None = None  # of matrix products; "auto": bf16 where that is faster and the network large
    long_phrases: str = "refuse"  # or "floor": what becomes of those that a network has no room for
    shard: Shard | None = None  # the only part of the table that is scored
    ray: str | None = None  # address of the cluster that scores; None: threads of this process
    on_bad_line: str = "error"  # or "skip": an invalid line goes to `rejects`
    resume: bool = False
    force: bool = False
    allow_misfit: bool = False  # score with a model that has learned nothing, or does not know the table's words
    again: bool = False  # score a table that has a column of this name already

    table: str = field(init=False)  # that is read, with .gz where it has that name
    output: str = field(init=False)  # where the new table goes; with .gz where the old one was named without
    rejects: str | None = field(init=False)  # where invalid lines go; None: the first one ends the run
    new_ini: str | None = field(init=False)  # where the extended ini goes
    devices: tuple[str, ...] = field(init=False)
    folders: tuple[Path, ...] = field(init=False)  # of all models, in the order of their columns

    def __post_init__(self) -> None:
        """Say where everything is.

        Raises:
            InputError: the table is not there.
        """
        table = find_input(self.phrase_table)
        output = self.new_table or (STANDARD_STREAM if table == STANDARD_STREAM else self._default_output(table))
        if self.new_table and table == self.phrase_table + ".gz" and not is_gzip(output):
            output += ".gz"
        ini = self.moses_ini and (
            self.output_ini or str(Path(output).parent / (Path(self.moses_ini).stem + ".rnn.ini"))
        )
        vars(self).update(
            table=table,
            output=output,
            rejects=rejects_of(output) if self.on_bad_line == "skip" else None,
            new_ini=ini,
            devices=tuple(self.device.split(",")),
            folders=(*self.models, *self.inverse_models),
        )

    def _default_output(self, table: str) -> str:
        stem = without_compression_suffix(table)
        return with_shard(str(stem.with_name(stem.name + ".rnn.gz")), self.shard)

    @property
    def averaged(self) -> bool:
        """Whether the models of one direction give one column together."""
        return self.combine != "columns"

    @property
    def added_columns(self) -> int:
        """How many scores each line gets."""
        each_way = map(len, (self.models, self.inverse_models))
        return self.word_penalty + sum(min(count, 1) if self.averaged else count for count in each_way)


def rejects_of(output: str) -> str:
    """Where the lines go that are left out of a table."""
    return output + ".rejects"
