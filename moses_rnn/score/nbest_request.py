"""The options of `moses-rnn nbest`, in a module of their own so that --help needs no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from moses_rnn.files.shards import OneShard
from moses_rnn.options import Device, Force, LongPhrases, Option, Quiet, Threads


def _parse_paths(text: str) -> tuple[Path, ...]:
    if not all(names := text.split(",")):
        raise ValueError(f"{text}: expected models with commas between, found an empty name")
    return tuple(map(Path, names))


def _parse_shares(text: str) -> tuple[float, ...]:
    try:
        return tuple(map(float, text.split(",")))
    except ValueError as error:
        raise ValueError(f"{text}: expected numbers with commas between") from error


@dataclass(frozen=True, kw_only=True)
class ListRequest:
    """The features to add to an n-best list; models are network folders or n-gram model files."""

    nbest: str
    source: Annotated[
        str | None,
        Option("The sentences that were translated, as the decoder read them; networks of pairs need it"),
    ] = None
    add: Annotated[
        tuple[Path, ...],
        Option(
            "Add log p by this model: a folder of any network, or an n-gram model (ARPA or KenLM's binary). A network "
            "of phrase pairs scores the phrases of each hypothesis, summed; one of targets alone the hypothesis. "
            "Repeat it"
        ),
    ] = ()
    ensembles: Annotated[
        tuple[tuple[Path, ...], ...],
        Option(
            "Add log p by several models together: their folders with commas between; of language models also n-gram "
            "models' files. Repeat it",
            "--ensemble",
            parse=_parse_paths,
        ),
    ] = ()
    combine: Annotated[
        str | None,
        Option(
            "How the models of an --ensemble are: the normalised mean of log p, that mean itself, log of the mean of p "
            "[default: geometric; of language models arithmetic, which cannot be geometric]",
            choices=("geometric", "mean-log", "arithmetic"),
        ),
    ] = None
    shares: Annotated[
        Sequence[float] | None,
        Option(
            "Of the language models of an --ensemble in the mean of p, with commas between [default: equal ones]",
            parse=_parse_shares,
        ),
    ] = None
    whole: Annotated[bool, Option("Score whole sentences with networks of pairs, whatever their phrases")] = False
    long_phrases: LongPhrases = "refuse"
    backoff: Annotated[
        str | None,
        Option("An ARPA file that shares out a language model's <unk> among the words outside its shortlist"),
    ] = None
    word_penalty: Annotated[
        Path | None,
        Option("Add minus the number of words outside the shortlist of this model or vocabulary file: WP0"),
    ] = None
    output: Annotated[str, Option("The new list, compressed if its suffix says so", "-o --output")] = "-"
    device: Device = "auto"
    threads: Threads = None
    shard: OneShard = None
    allow_misfit: Annotated[
        bool, Option("Accept a model that has learned nothing, or that knows less than half of the words")
    ] = False
    force: Force = False
    quiet: Quiet = False

    @property
    def models(self) -> list[Path]:
        """All networks and n-gram models."""
        return [*self.add, *(path for paths in self.ensembles for path in paths)]

    @property
    def folders(self) -> list[Path]:
        """Folders of all networks."""
        return [path for path in self.models if path.is_dir()]
