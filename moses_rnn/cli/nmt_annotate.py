"""moses-rnn-nmt annotate: two texts with tokens in place of their rare words."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moses_rnn.cli.command import CONTEXT, Program, StopRequest, reports_errors, say, takes
from moses_rnn.cli.files import check_inputs
from moses_rnn.errors import InputError
from moses_rnn.formats.rare_words import KINDS, POSUNK, WINDOW, RareWords

if TYPE_CHECKING:
    from moses_rnn.files.outputs import OutputFile
    from moses_rnn.formats.rare_words import Shortlists
    from moses_rnn.producers.open import OpenModel
    from moses_rnn.training.rare_corpus import Annotation, Watch

LINES = 1 << 14  # written together
MIN_COUNT = 2
EPILOG = """\b
Example: texts in which words seen once are pointers to where they come from, for training any tool with them:
  moses-rnn-nmt annotate corpus/train --source en --target fr --alignment aligned.grow-diag-final-and \\
      --kind posunk --output corpus/annotated

Writes OUTPUT.SOURCE and OUTPUT.TARGET. moses-rnn-nmt train --rare does the same by itself, and moses-rnn-nmt restore
puts words in place of what was annotated. Exit codes: 0 done, 1 failure, 2 wrong command line, 3 texts or model
rejected.
"""


@dataclass(frozen=True, kw_only=True)
class Annotating:
    """Options of `annotate`."""

    prefix: str
    source: str
    target: str
    alignment: str | None
    kind: str | None
    window: int | None
    model: Path | None
    source_words: int | None
    target_words: int | None
    min_count: int | None
    inverse: bool
    output: str
    force: bool
    quiet: bool


@click.command(cls=Program, context_settings=CONTEXT, epilog=EPILOG)
@click.argument("prefix")
@click.option("--source", required=True, help="The source text is PREFIX.SOURCE, plain or compressed")
@click.option("--target", required=True, help="The target text is PREFIX.TARGET, line by line its translation")
@click.option("--alignment", metavar="FILE", help="Their word alignment, a line for each pair: 0-0 1-2 …")
@click.option(
    "--kind",
    type=click.Choice(KINDS),
    help="What stands for rare words: see docs/rare-words.md; noalign needs no alignment [default: posunk]",
)
@click.option("--window", type=click.IntRange(1, 1000), help=f"Farthest pointer [default: {WINDOW}]")
@click.option(
    "--model",
    type=click.Path(path_type=Path),
    help="Rare is what this model does not know; kind, window and direction are its own [default: by counts]",
)
@click.option("--source-words", type=click.IntRange(1), help="Only the N most frequent source words are not rare")
@click.option("--target-words", type=click.IntRange(1), help="The same of the target")
@click.option("--min-count", type=click.IntRange(1), help=f"Words seen less are rare [default: {MIN_COUNT}]")
@click.option("--inverse", is_flag=True, help="For a model that reads the target and writes the source")
@click.option("-o", "--output", required=True, help="Prefix of both new texts")
@click.option("--force", is_flag=True, help="Replace existing outputs")
@click.option("-q", "--quiet", is_flag=True, help="No summary and no progress on stderr")
@reports_errors
@takes(Annotating)
def annotate(given: Annotating) -> None:
    """Put tokens in place of the rare words of PREFIX.SOURCE and PREFIX.TARGET."""
    _check_options(given)
    check_inputs(f"{given.prefix}.{given.source}", f"{given.prefix}.{given.target}", given.alignment, given.model)
    model = _model(given)
    rare = (model and model.rare) or RareWords(given.kind or POSUNK, given.window or WINDOW)
    if rare.needs_links and given.alignment is None:
        raise click.UsageError(f"--kind {rare.kind} needs --alignment, by which words are annotated")
    inverse = model.inverse if model else given.inverse
    from moses_rnn.cli.progress import Display
    from moses_rnn.files.outputs import OutputFile, commit_all
    from moses_rnn.training.parallel import ParallelTexts
    from moses_rnn.training.rare_corpus import AlignedTexts, Annotation

    texts = ParallelTexts.of_prefix(given.prefix, given.source, given.target)
    texts.check_lengths()
    annotation = Annotation(rare, AlignedTexts.of(texts, given.alignment), None, inverse)
    display = Display("lines", quiet=given.quiet)
    watch = display.show, StopRequest()
    inputs = tuple(filter(None, (texts.source, texts.target, annotation.texts.links)))
    endings = (given.target, given.source) if inverse else (given.source, given.target)
    with ExitStack() as stack:
        paths = [f"{given.output}.{ending}" for ending in endings]
        files = [stack.enter_context(OutputFile(path, force=given.force, inputs=inputs)) for path in paths]
        lines = _write(annotation, _shortlists(given, model, annotation, watch), watch, files)
        commit_all(files)
    display.close()
    if not given.quiet:
        say(f"{lines:,} pairs annotated by {rare.kind}")


def _check_options(given: Annotating) -> None:
    """Refuse what a model would overrule."""
    named = ("source_words", "target_words", "min_count")
    idle = [name for name in named if getattr(given, name) is not None]
    if idle and given.model is not None:
        raise click.UsageError(f"--{idle[0].replace('_', '-')}: with --model, rare is what the model does not know")


def _model(given: Annotating) -> OpenModel | None:
    """The model that says what is rare."""
    if given.model is None:
        return None
    from moses_rnn.producers.open import open_model

    model = open_model(given.model)
    if given.inverse and not model.inverse:
        raise InputError(
            f"{given.model}: expected a model that reads the target, for --inverse, found one of the source"
        )
    own = model.rare
    if own and (given.kind or own.kind, given.window or own.window) != (own.kind, own.window):
        raise InputError(f"{given.model}: expected the --kind and --window asked for, found {own.kind}, {own.window}")
    return model


def _shortlists(given: Annotating, model: OpenModel | None, annotation: Annotation, watch: Watch) -> Shortlists:
    """What is not rare: what a model knows, or what is frequent."""
    if model is not None:
        from moses_rnn.producers.annotated import shortlists_of

        return shortlists_of(model, annotation.rare)
    from moses_rnn.training.corpus import CorpusConfig
    from moses_rnn.training.rare_corpus import shortlists_by
    from moses_rnn.training.sentence_config import ALL

    read, written = given.source_words or ALL, given.target_words or ALL
    if given.inverse:
        read, written = written, read
    config = CorpusConfig(read, written, min_count=given.min_count or MIN_COUNT)
    return shortlists_by(annotation.count(config, watch), config)


def _write(annotation: Annotation, known: Shortlists, watch: Watch, files: list[OutputFile]) -> int:
    """Write what is read and what is written; returns the number of lines."""
    pairs, lines = annotation.annotated(annotation.texts, known, watch), 0
    while block := list(islice(pairs, LINES)):
        lines += len(block)
        for file, texts in zip(files, zip(*block, strict=True), strict=True):
            file.append(b"".join(b" ".join(text) + b"\n" for text in texts))
    return lines
