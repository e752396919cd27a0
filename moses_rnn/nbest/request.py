"""The options of commands for n-best lists and rerankers, as the commands fill them in; --help needs no torch."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from moses_rnn.files.streams import STANDARD_STREAM
from moses_rnn.options import (
    FIRST_SECTION,
    Device,
    Force,
    LongPhrases,
    Option,
    Output,
    PretrainedOptions,
    Quiet,
    Resume,
    Section,
    Threads,
    is_pretrained,
)
from moses_rnn.training.presets import networks_of

AllowMisfit = Annotated[bool, Option("Accept a model that has learned nothing, or knows fewer than half of the words")]
AllowChanged = Annotated[bool, Option("Accept files that changed since the weights were tuned")]


def _parse_paths(text: str) -> tuple[Path, ...]:
    if not all(names := text.split(",")):
        raise ValueError(f"{text}: expected models separated by commas, found an empty name")
    if any(map(is_pretrained, names)):
        raise ValueError(f"{text}: expected folders, found a pretrained model: give it with --add")
    return tuple(map(Path, names))


def _parse_flags(text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise ValueError(f"{text}: expected flags as in a shell: {error}") from error


@dataclass(frozen=True, kw_only=True)
class ListRequest(PretrainedOptions):
    """The features to add to an n-best list; models are network folders or n-gram model files."""

    nbest: Annotated[str, Section(FIRST_SECTION)]
    source: Annotated[
        str | None,
        Option("Source sentences, as the decoder read them; language models need none"),
    ] = None
    add: Annotated[
        tuple[Path, ...],
        Option(
            "Add log p of this model: the folder of any network, an n-gram model (ARPA or KenLM's binary), or a "
            "pretrained model (hf:FOLDER or hf:NAME); repeat it for several. A phrase network sums over the phrases of "
            "each hypothesis; other models score it whole"
        ),
    ] = ()
    ensembles: Annotated[
        tuple[tuple[Path, ...], ...],
        Option(
            "Add log p of several networks together: their folders, separated by commas. Repeat it for several "
            "ensembles",
            "--ensemble",
            parse=_parse_paths,
        ),
    ] = ()
    combine: Annotated[
        str | None,
        Option(
            "How an --ensemble combines its models: normalised mean of log p, plain mean of log p, or log of the "
            "mean of p [default: geometric]",
            choices=("geometric", "mean-log", "arithmetic"),
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
    output: Annotated[str, Option("The new list; gzip if its name ends in .gz", "-o --output")] = "-"
    device: Device = "auto"
    threads: Threads = None
    allow_misfit: AllowMisfit = False
    force: Force = False
    quiet: Quiet = False

    @property
    def models(self) -> list[Path]:
        """All networks and n-gram models."""
        return [*self.add, *(path for paths in self.ensembles for path in paths)]


@dataclass(frozen=True, kw_only=True)
class Material(PretrainedOptions):
    """What a reranker is made from."""

    ini: Annotated[str, Section(FIRST_SECTION)]
    texts: Annotated[str | None, Option("Training texts TEXTS.SOURCE and TEXTS.TARGET, tokenised as for Moses")] = None
    dev: Annotated[str, Option("Texts DEV.SOURCE and DEV.TARGET, on which to tune the weights")]
    source: Annotated[str, Option("Suffix of the source texts and code of their language, such as en")]
    target: Annotated[str, Option("The same for the target texts, such as fr")]
    output: Annotated[Path, Option("Folder of the reranker", "-o --output", metavar="FOLDER")]
    add: Annotated[
        tuple[Path, ...],
        Option("Use this finished or pretrained model instead of training one; repeat it for several", metavar="MODEL"),
    ] = ()
    architecture: Annotated[
        str, Option("Network to train; see moses-rnn nmt train", choices=tuple(networks_of("sentences")))
    ] = "transformer"
    subwords: Annotated[
        int, Option("Cut words into at most N subwords; 0 leaves words whole", metavar="N", min=0, max=1_000_000)
    ] = 6000
    both_orders: Annotated[bool, Option("Train a second network, which writes the last word first")] = False
    lists: Annotated[str | None, Option("Use this n-best list instead of decoding DEV.SOURCE", metavar="FILE")] = None
    test: Annotated[str | None, Option("Also report BLEU on TEST.SOURCE and TEST.TARGET", metavar="TEST")] = None
    list_size: Annotated[int, Option("Maximum hypotheses per list", min=2)] = 200
    max_minutes: Annotated[float, Option("Maximum minutes of training per network", min=0, min_open=True)] = 60.0
    decoder_flags: Annotated[
        Sequence[str] | None, Option("Further flags for Moses, such as '-search-algorithm 1'", parse=_parse_flags)
    ] = None
    device: Device = "auto"
    threads: Threads = None
    allow_misfit: AllowMisfit = False
    force: Annotated[bool, Option("Delete a network that learned from other texts, and train again")] = False
    quiet: Quiet = False


@dataclass(frozen=True, kw_only=True)
class RerankingRequest:
    """A text to translate, and what to write."""

    folder: Path
    input: str = STANDARD_STREAM
    output: Output = STANDARD_STREAM
    n_best: Annotated[
        tuple[int, str] | None, Option("Write the N best of each line to FILE, in the new order", metavar="N FILE")
    ] = None
    alignments: Annotated[str | None, Option("Write the word alignments of the translations", metavar="FILE")] = None
    json: Annotated[
        bool, Option("Write a JSON record per line: source, translation, the decoder's own choice, score, features")
    ] = False
    raw: Annotated[bool, Option("Read raw text: tokenise it, and detokenise the translation, with sacremoses")] = False
    allow_changed: AllowChanged = False
    device: Device = "auto"
    threads: Threads = None
    resume: Resume = False
    force: Force = False
    quiet: Quiet = False

    @property
    def outputs(self) -> list[str]:
        """The files to write."""
        return [self.output, *([self.n_best[1]] if self.n_best else []), *filter(None, [self.alignments])]


@dataclass(frozen=True, kw_only=True)
class ServingOptions:
    """A reranker to serve, where, and the limits of a request."""

    folder: Path
    host: Annotated[str, Option("Address to listen on")] = "127.0.0.1"
    port: Annotated[int, Option("Port to listen on; 0 for any free one", min=0, max=65535)] = 8080
    moses_server: Annotated[str | None, Option("Take the lists from the mosesserver at this URL", metavar="URL")] = None
    max_bytes: Annotated[int, Option("Maximum bytes per request", min=1)] = 1 << 20
    max_words: Annotated[int, Option("Maximum words per text", min=1)] = 250
    max_seconds: Annotated[float, Option("Maximum seconds per request", min=0, min_open=True, max=86_400)] = 60.0
    allow_changed: AllowChanged = False
    device: Device = "auto"
    threads: Threads = None
    quiet: Quiet = False
