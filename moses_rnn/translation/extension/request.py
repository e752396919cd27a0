"""What `moses-rnn extend` is asked for; nothing here needs torch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from moses_rnn.files.streams import existing_input, without_compression_suffix

BEAM = 12  # prefixes of a source
MOST_WORDS = 10  # of a target


@dataclass(frozen=True, kw_only=True)
class ExtensionRequest:
    """A table to extend, by which networks, and what to write."""

    phrase_table: str
    model: Path | None  # None: the one beside the table
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
        return existing_input(self.phrase_table)

    @property
    def new_table(self) -> str:
        """Where the new table goes."""
        stem = without_compression_suffix(self.table)
        return self.output or str(stem.with_name(stem.name + ".extended.gz"))

    @property
    def new_ini(self) -> str | None:
        """Where the new ini goes, if one is made."""
        if self.moses_ini is None:
            return None
        return str(Path(self.new_table).parent / (Path(self.moses_ini).stem + ".extended.ini"))

    @property
    def marks(self) -> bool:
        """Whether a column says which lines are new."""
        return self.provenance == "column"

    @property
    def best(self) -> int:
        """Targets to search for: as many as are wanted if all that the table has are among them."""
        return self.top + (self.fewer_than or 1) - 1
