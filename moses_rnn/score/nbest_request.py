"""What is asked of a list, apart from what does it: --help of the command needs no torch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from moses_rnn.files.shards import Shard


@dataclass(frozen=True, kw_only=True)
class ListRequest:
    """The features to be added to an n-best list, and how; models are folders of networks or files of n-gram models."""

    nbest: str
    source: str | None
    add: tuple[Path, ...]
    ensembles: tuple[tuple[Path, ...], ...]
    combine: str | None  # of ensembles; None: geometric, or arithmetic of language models
    shares: tuple[float, ...]  # of language models in each ensemble; none: equal ones
    backoff: str | None  # an ARPA file, for the words outside a language model's shortlist
    whole: bool  # sentences, not their phrases, for networks of pairs
    long_phrases: str  # "floor": the smallest score for pairs that a network has no room for; "refuse"
    word_penalty: Path | None  # a model's folder or a vocabulary file
    output: str
    shard: Shard | None
    device: str
    threads: int | None
    allow_misfit: bool  # take a model that has learned nothing, or that knows less than half of the words
    force: bool
    quiet: bool

    @property
    def models(self) -> list[Path]:
        """All networks and n-gram models."""
        return [*self.add, *(path for paths in self.ensembles for path in paths)]

    @property
    def folders(self) -> list[Path]:
        """Of all networks."""
        return [path for path in self.models if path.is_dir()]
