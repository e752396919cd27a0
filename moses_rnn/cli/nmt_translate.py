"""moses-rnn-nmt translate: the own translations of a network, or of several together."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from moses_rnn.cli.command import CONTEXT, STOPPED, Program, StopRequest, reports_errors, say, takes
from moses_rnn.cli.files import check_inputs
from moses_rnn.cli.nmt_options import (
    NEED_LEXICON,
    ComputeOptions,
    LexiconOptions,
    compute_options,
    lexicon_options,
    make_compute,
    open_lexicon,
    open_models,
    warn_of_columns,
    warn_of_unit,
)

if TYPE_CHECKING:
    from moses_rnn.formats.lexicon import Lexicon
    from moses_rnn.translation.request import TranslationRequest
    from moses_rnn.translation.translate import Counts

EPILOG = f"""\b
Example: from stdin to stdout; and a large text with its 100-best lists, which may be interrupted:
  moses-rnn-nmt translate search < test.en > test.out
  moses-rnn-nmt translate search big.en -o big.out --n-best 100 big.nbest.gz --resume
  moses-rnn-nmt translate search1 search2 search3 test.en > test.out

\b
One line in, one line out, in order; an empty line stays empty. Text is tokenised as the network learned it; words
outside its shortlist are read as <unk>. Lists are Moses's own, of one feature, SEARCH0, LSTM0 or RNN0 by the network,
ENS0 of several: log p(words, </s> | source), natural, never divided by the length; with attention, each word's source
word stands behind. A line of --alignments is a JSON record of the line's number, its words and α, where the last
column, and the last row if there is one more than words, is the end symbol's. With -o, blocks of lines are durable as
they are done: after any interruption the same command with --resume goes on to the same bytes. Exit codes: 0 done, 1
failure, 2 wrong command line, 3 text or model rejected, {STOPPED} stopped and resumable.
"""


@dataclass(frozen=True, kw_only=True)
class Translating(ComputeOptions, LexiconOptions):
    """Options of `translate`."""

    places: tuple[str, ...]
    beam: int
    length_score: Literal["sum", "mean"]
    no_unknown: bool
    unknown: Literal["no", "copy", "dictionary", "lowercase"] | None
    candidates: tuple[int, int] | None
    n_best: tuple[int, str] | None
    alignments: str | None
    max_words_factor: int
    resume: bool


@click.command(cls=Program, context_settings=CONTEXT, epilog=EPILOG)
@click.argument("places", metavar="MODEL... [INPUT]", nargs=-1, required=True)
@click.option("--beam", type=click.IntRange(1), default=12, show_default=True, help="Width of the search; 1 is greedy")
@click.option(
    "--length-score",
    type=click.Choice(["sum", "mean"]),
    default="sum",
    show_default=True,
    help="What decides: log p, or log p per word, searched as RNNsearch's released code does",
)
@click.option(
    "--no-unknown", is_flag=True, help="Never write <unk>, nor what points to rare words; log p stays the model's"
)
@click.option(
    "--unknown",
    type=click.Choice(["no", "copy", "dictionary", "lowercase"]),
    help="Replace each <unk> by the source word that the network looked at, or that its annotation of rare words "
    "points to: itself; its translation by --lexicon or --dictionary; the latter for lower-case words alone "
    "[default: if rare words are annotated, dictionary or without one copy; else no]",
)
@lexicon_options
@click.option(
    "--candidates",
    type=(click.IntRange(0), click.IntRange(0)),
    metavar="K L",
    help="Write only the K most frequent words and the L likeliest translations of each source word",
)
@click.option(
    "--n-best", type=(click.IntRange(1), str), metavar="K FILE", help="Write the K best of each line, as Moses does"
)
@click.option("--alignments", metavar="FILE", help="Write where a network with attention looked; JSON lines")
@click.option(
    "--max-words-factor",
    type=click.IntRange(1),
    default=3,
    show_default=True,
    help="Longest translation, in words for each source word and its end symbol",
)
@click.option("--resume", is_flag=True, help="Go on where an interrupted run ended, or begin; needs -o")
@compute_options
@reports_errors
@takes(Translating)
def translate(given: Translating) -> None:
    """Translate the lines of INPUT, or of stdin, by the network MODEL alone, or by several together."""
    folders, text = _places(given.places)
    _check_options(given)
    lexicon = open_lexicon(given, needed_by=_needs_lexicon(given))
    check_inputs(*folders, text)
    from moses_rnn.cli.progress import Display
    from moses_rnn.translation.request import rule_of
    from moses_rnn.translation.run import translate_text

    request = _request(given, text, lexicon)
    model = open_models(folders, given.combine)
    _check_lexicon(given, rule_of(request, model))
    warn_of_unit(model)
    warn_of_columns(given, request.lexicon, model.source_vocabulary.words)
    display = Display("sentences", quiet=given.quiet or (given.output == "-" and sys.stdout.isatty()))
    try:
        counts = translate_text(request, model, display.show, StopRequest())
    finally:
        display.close()
    for line in _summary(counts, quiet=given.quiet):
        say(line)


def _places(places: tuple[str, ...]) -> tuple[list[Path], str]:
    """The models and the text: the last of several places, if it is no folder."""
    models, text = list(places), "-"
    if len(models) > 1 and not Path(models[-1]).is_dir():
        text = models.pop()
    return list(map(Path, models)), text


def _check_options(given: Translating) -> None:
    """Refuse what contradicts itself or would do nothing."""
    if given.resume and given.output == "-":
        raise click.UsageError("--resume needs -o: what goes to stdout cannot be resumed")
    if given.candidates and given.n_best:
        raise click.UsageError("--candidates: lists are scored over all words; leave out --n-best")
    if given.no_unknown and given.unknown not in (None, "no"):
        raise click.UsageError(f"--unknown {given.unknown} replaces <unk>, which --no-unknown never writes")
    for option, path in (("n-best", given.n_best and given.n_best[1]), ("alignments", given.alignments)):
        if path == "-":
            raise click.UsageError(f"--{option} needs a file: stdout is for the translations")


def _request(given: Translating, text: str, lexicon: Lexicon | None) -> TranslationRequest:
    from moses_rnn.cli.files import inputs_of
    from moses_rnn.files.journal import Opening
    from moses_rnn.files.streams import existing_input
    from moses_rnn.translation.beam_search import BeamConfig
    from moses_rnn.translation.request import TranslationRequest

    count, n_best = given.n_best or (1, None)
    beam = BeamConfig(
        width=given.beam,
        best=count,
        allow_unknown=not given.no_unknown,
        words_per_source_word=given.max_words_factor,
        length_score=given.length_score,
    )
    return TranslationRequest(
        input=existing_input(text),
        output=given.output,
        beam=beam,
        compute=make_compute(given),
        n_best=n_best,
        alignments=given.alignments,
        unknown=given.unknown,
        candidates=given.candidates,
        lexicon=lexicon,
        lexicon_file=next(iter(inputs_of(given.lexicon or given.dictionary)), None),
        opening=Opening(force=given.force, resume=given.resume),
    )


def _needs_lexicon(given: Translating) -> str:
    """The option that is of no use without one, if there is any."""
    if given.unknown in NEED_LEXICON:
        return f"--unknown {given.unknown}"
    return "--candidates" if given.candidates else ""


def _check_lexicon(given: Translating, rule: str) -> None:
    """Refuse one that would do nothing."""
    if (given.lexicon or given.dictionary) and not given.candidates and rule not in NEED_LEXICON:
        option = "--lexicon" if given.lexicon else "--dictionary"
        raise click.UsageError(f"{option} is for --unknown dictionary or lowercase, or for --candidates")


def _summary(counts: Counts, *, quiet: bool) -> Iterator[str]:
    if not quiet:
        empty = f", {counts.empty:,} of them empty" if counts.empty else ""
        yield f"{counts.lines:,} lines{empty}; {counts.unknown:,} of {counts.words:,} words read as <unk>"
        if counts.replaced:
            yield f"{counts.replaced:,} unknown words of the translations were replaced by the source's"
        if counts.written_unknown:
            yield f"{counts.written_unknown:,} words of the translations are <unk>"
    if counts.without_words:
        yield f"warning: empty translations of lines with words: {counts.without_words:,}"
    if counts.unended:
        yield f"warning: translations that met the limit of their length; they stand as they were: {counts.unended:,}"
