"""moses-rnn-nmt rebuild: what networks wrote of sentences as trees, or as factors for Moses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import click

from moses_rnn.cli.command import CONTEXT, Program, reports_errors, say, takes
from moses_rnn.cli.files import output_to, text_of
from moses_rnn.errors import FormatError, InputError

if TYPE_CHECKING:
    from moses_rnn.formats.transitions import Execution

EPILOG = """\b
Examples: bracketed trees of linearised ones; relations as factors of a text that Moses is to be trained on:
  moses-rnn-nmt rebuild test.out --words test.words --as trees -o test.trees
  moses-rnn-nmt rebuild corpus/train.actions --words corpus/train.en --as factors -o corpus/factored.en

WRITTEN has a line for each of --words: linearised trees for trees, arc-standard actions for conllu and factors. What is
malformed is repaired, and counted (docs/trees.md says how). Factors are word|relation; a | within either is escaped.
Exit codes: 0 done, 1 failure, 2 wrong command line, 3 texts rejected.
"""


class Line(NamedTuple):
    """What becomes of a sentence."""

    text: bytes
    malformed: bool


@dataclass(frozen=True, kw_only=True)
class Rebuilding:
    """Options of `rebuild`."""

    written: str
    words: str
    kind: str
    output: str
    force: bool
    quiet: bool


@click.command(cls=Program, context_settings=CONTEXT, epilog=EPILOG)
@click.argument("written")
@click.option("--words", required=True, help="The sentences that were parsed, a line for each of WRITTEN")
@click.option(
    "--as",
    "kind",
    type=click.Choice(["trees", "conllu", "factors"]),
    required=True,
    help="Bracketed trees, one a line; dependencies as CoNLL-U; word|relation, as Moses reads factors",
)
@click.option("-o", "--output", default="-", show_default=True, help="Compressed if its suffix says so")
@click.option("--force", is_flag=True, help="Replace an existing output")
@click.option("-q", "--quiet", is_flag=True, help="No summary on stderr")
@reports_errors
@takes(Rebuilding)
def rebuild(given: Rebuilding) -> None:
    """Make trees, or words with factors, of what a network wrote of each line of --words."""
    from moses_rnn.files.streams import existing_input

    sentences, written = text_of(given.words), text_of(given.written)
    if len(sentences) != len(written):
        raise InputError(
            f"{existing_input(given.written)}: expected as many lines as {existing_input(given.words)} has, "
            f"{len(sentences):,}, found {len(written):,}"
        )
    malformed = 0
    with output_to(given.output, given.force, (given.written, given.words)) as file:
        pieces = []
        for line in _rebuilt(given, sentences, written):
            pieces.append(line.text)
            malformed += line.malformed
        file.append(b"".join(pieces))
        file.commit()
    if not given.quiet:
        say(f"{len(sentences):,} sentences; {malformed:,} were malformed")


def _rebuilt(given: Rebuilding, sentences: list[bytes], written: list[bytes]) -> Iterator[Line]:
    from moses_rnn.formats.phrase_forms import words

    makers = {"trees": _as_tree, "conllu": _as_conllu, "factors": _as_factors}
    for number, (sentence, line) in enumerate(zip(sentences, written, strict=True), 1):
        text = words(sentence)
        if given.kind == "conllu" and not text:  # which it would have no line for
            raise FormatError(given.words, number, "a sentence", "a blank line")
        yield makers[given.kind](words(line), text)


def _as_tree(tokens: list[bytes], text: list[bytes]) -> Line:
    from moses_rnn.formats import trees

    tree, malformed = trees.rebuild(tokens, text)
    return Line(trees.format_tree(tree) + b"\n", malformed)


def _as_conllu(actions: list[bytes], text: list[bytes]) -> Line:
    from moses_rnn.formats.conllu import format_conllu

    execution = _execution(actions, text)
    return Line(format_conllu(execution.sentence), execution.malformed)


def _as_factors(actions: list[bytes], text: list[bytes]) -> Line:
    from moses_rnn.formats.conllu import format_factors

    execution = _execution(actions, text)
    return Line(format_factors(execution.sentence) + b"\n", execution.malformed)


def _execution(actions: list[bytes], text: list[bytes]) -> Execution:
    from moses_rnn.formats.transitions import run_actions

    return run_actions(actions, text)
