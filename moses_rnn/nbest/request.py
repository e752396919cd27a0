"""The options of adding features to an n-best list, as the command fills them in; --help needs no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from moses_rnn.files.shards import OneShard
from moses_rnn.options import Device, Force, LongPhrases, Option, Quiet, Threads


def _parse_paths(text: str) -> tuple[Path, ...]:
    if not all(names := text.split(",")):
        raise ValueError(f"{text}: expected models separated by commas, found an empty name")
    return tuple(map(Path, names))


def _parse_shares(text: str) -> tuple[float, ...]:
    try:
        return tuple(map(float, text.split(",")))
    except ValueError as error:
        raise ValueError(f"{text}: expected numbers separated by commas") from error


@dataclass(frozen=True, kw_only=True)
class ListRequest:
    """The features to add to an n-best list; models are network folders or n-gram model files."""

    nbest: str
    source: Annotated[
        str | None,
        Option("Source sentences, as the decoder read them; language models need none"),
    ] = None
    add: Annotated[
        tuple[Path, ...],
        Option(
            "Add log p of this model: the folder of any network, or an n-gram model (ARPA or KenLM's binary); repeat "
            "it for several. A phrase network sums over the phrases of each hypothesis; a language model "
            "scores it whole"
        ),
    ] = ()
    ensembles: Annotated[
        tuple[tuple[Path, ...], ...],
        Option(
            "Add log p of several models together: their folders, separated by commas; for language models also n-gram "
            "files. Repeat it for several ensembles",
            "--ensemble",
            parse=_parse_paths,
        ),
    ] = ()
    combine: Annotated[
        str | None,
        Option(
            "How an --ensemble combines its models: normalised mean of log p, plain mean of log p, or log of the "
            "mean of p [default: geometric, which language models do not have; their default is arithmetic]",
            choices=("geometric", "mean-log", "arithmetic"),
        ),
    ] = None
    shares: Annotated[
        Sequence[float] | None,
        Option(
            "Shares of an --ensemble's language models in the mean of p, separated by commas [default: equal]",
            parse=_parse_shares,
        ),
    ] = None
    whole: Annotated[bool, Option("Score whole sentences, even with a network that learned from phrases")] = False
    long_phrases: LongPhrases = "refuse"
    backoff: Annotated[
        str | None,
        Option(
            "ARPA file that divides the probability of a language model's <unk> among the words outside its shortlist"
        ),
    ] = None
    word_penalty: Annotated[
        Path | None,
        Option("Add WP0: minus the number of words outside the shortlist of this model or vocabulary file"),
    ] = None
    output: Annotated[str, Option("The new list; its suffix sets the compression", "-o --output")] = "-"
    device: Device = "auto"
    threads: Threads = None
    shard: OneShard = None
    allow_misfit: Annotated[
        bool, Option("Accept a model that has learned nothing, or knows fewer than half of the words")
    ] = False
    force: Force = False
    quiet: Quiet = False

    @property
    def models(self) -> list[Path]:
        """All networks and n-gram models."""
        return [*self.add, *(path for paths in self.ensembles for path in paths)]
