"""moses-rnn nmt translate: translations by a network, or by several together."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from moses_rnn.cli.command import STOPPED, StopRequest, check_inputs, choose_device, command, print_err, warn
from moses_rnn.cli.inputs import warn_of_unit
from moses_rnn.errors import InputError, number_of, shown
from moses_rnn.translation.requests import WITH_LEXICON, TranslationRequest

if TYPE_CHECKING:
    from moses_rnn.moses.lexicon import Lexicon
    from moses_rnn.translation.translate import Counts

EPILOG = f"""\b
Examples: from stdin to stdout; a large text with resumable 100-best lists; three networks together:
  moses-rnn nmt translate --model search < test.en > test.out
  moses-rnn nmt translate big.en --model search -o big.out --beam 100 --n-best 100 big.nbest.gz --resume
  moses-rnn nmt translate test.en --model search1 --model search2 --model search3 > test.out

Tokenise the text like the training text. Each input line gives one output line, in order; an empty line stays empty.
Words outside the shortlist are read as <unk>.

N-best lists are in Moses's format. Their feature has a name such as SEARCH0 or LSTM0, after the network, or ENS0 for
several. Its value is the natural log p(words, </s> | source), never divided by the length. For a translation cut at the
length limit, it is log p of the words alone. Networks with attention also write word alignments.

Each line of --alignments is a JSON record: the number of the input line, the words of both sides, and the attention
weights α. The last column belongs to the end symbol, and so does the last row if there is one more row than words.

With -o, each finished block of 512 lines is saved. After any interruption, the same command with --resume continues
after the saved blocks and gives the same bytes. Exit codes: 0 done, 1 failure, 2 usage error, 3 text or model refused,
{STOPPED} stopped and resumable.
"""


@command(EPILOG)
def translate(request: TranslationRequest) -> None:
    """Translate a text with one network or several. INPUT is a file, or - for stdin."""
    _check_options(request)
    check_inputs(*request.models, request.input, request.dictionary)
    lexicon = _read_dictionary(request)
    from moses_rnn.cli.progress import progress
    from moses_rnn.models.ensembles import open_models
    from moses_rnn.translation.run import translate_text
    from moses_rnn.translation.translate import rule_of

    request = replace(request, device=choose_device(request.device, request.threads))
    model = open_models(request.models)
    if lexicon and not request.candidates and rule_of(model, request.unknown, lexicon) not in WITH_LEXICON:
        raise click.UsageError("--dictionary needs --unknown dictionary or lowercase, or --candidates")
    warn_of_unit(model)
    if request.n_best and request.n_best[0] > request.beam and request.length_score == "mean":
        warn(f"each list has at most {request.beam:,} translations: give --beam {request.n_best[0]} for more")
    if lexicon and not model.models[0].of_subwords:
        _warn_of_columns(str(request.dictionary), lexicon, model.source_vocabulary.words)
    with progress("sentences", quiet=request.quiet or (request.output == "-" and sys.stdout.isatty())) as advanced:
        counts = translate_text(request, model, lexicon, advanced, StopRequest())
    for line in () if request.quiet else _summary(counts):
        print_err(line)
    if counts.without_words:
        warn(f"empty translations of lines with words: {counts.without_words:,}")
    if counts.unended:
        warn(f"translations cut at the length limit: {counts.unended:,}")


def _check_options(request: TranslationRequest) -> None:
    if request.resume and request.output == "-":
        raise click.UsageError("--resume needs -o: output on stdout cannot be resumed")
    if request.candidates and request.n_best:
        raise click.UsageError("--candidates excludes --n-best: n-best lists are scored over all words")
    needs = f"--unknown {request.unknown}" if request.unknown in WITH_LEXICON else "--candidates"
    if not request.dictionary and (request.candidates or request.unknown in WITH_LEXICON):
        raise click.UsageError(f"{needs} needs --dictionary")
    for option, path in (("n-best", request.n_best and request.n_best[1]), ("alignments", request.alignments)):
        if path == "-":
            raise click.UsageError(f"--{option} needs a file: stdout is for the translations")


def _read_dictionary(request: TranslationRequest) -> Lexicon | None:
    from moses_rnn.files.streams import find_input, read_text
    from moses_rnn.moses.lexicon import read_lexicon
    from moses_rnn.table.phrase_table import SEPARATOR

    if not request.dictionary:
        return None
    name = find_input(request.dictionary)
    lexicon = read_lexicon(read_text(name), name)
    if lexicon.left_out and not request.quiet:
        print_err(f"{name}: {number_of(lexicon.left_out, 'line')} left out, with NULL for no word")
    parted = [word for source in lexicon.entries if SEPARATOR in (word := lexicon.best(source) or b"")]
    if request.n_best and parted:
        raise InputError(f"{name}: expected words without ||| for an n-best list, found {shown(parted[0])}")
    return lexicon


def _warn_of_columns(path: str, lexicon: Lexicon, source_words: Sequence[bytes]) -> None:
    """Say if the columns of the dictionary seem to be in the other order."""
    translated, written = lexicon.coverage(source_words)
    if translated < written:
        warn(
            f"{path}: of {number_of(len(source_words), 'source word')}, {number_of(translated, 'has', 'have')} "
            "translations in it and "
            f"{number_of(written, 'is a translation itself', 'are translations themselves')}: does it put the "
            "target word first, like Moses's lex.f2e?"
        )


def _summary(counts: Counts) -> Iterator[str]:
    empty = f", {counts.empty:,} of them empty" if counts.empty else ""
    yield (
        f"{number_of(counts.lines, 'line')}{empty}; {counts.unknown:,} of {number_of(counts.words, 'word')} "
        "read as <unk>"
    )
    if counts.replaced:
        yield (
            f"{number_of(counts.replaced, 'unknown word', 'unknown words')} of the translations "
            f"{'was' if counts.replaced == 1 else 'were'} replaced from the source"
        )
    if counts.written_unknown:
        one, several = "word of the translations is <unk>", "words of the translations are <unk>"
        yield number_of(counts.written_unknown, one, several)
