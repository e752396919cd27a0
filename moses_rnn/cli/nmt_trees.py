"""moses-rnn nmt linearise and rebuild: a treebank as texts from which networks learn to parse, and trees of theirs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice

import click

from moses_rnn.cli.command import CONTEXT, Program, print_err, reports_errors, takes
from moses_rnn.cli.options import output_to, parallel_texts
from moses_rnn.errors import FormatError, InputError

LINES = 1 << 14  # written together
LINEARISE_EPILOG = """\b
Examples: texts of bracketed trees and of dependencies; all sentences of a test set, to be parsed:
  moses-rnn nmt linearise train.trees -o train
  moses-rnn nmt linearise en_ewt-ud-train.conllu -o train
  moses-rnn nmt linearise en_ewt-ud-test.conllu -o test --words-only

A file whose name ends in .conllu, perhaps compressed, has dependencies, any other one has trees. Writes PREFIX.words,
and PREFIX.brackets, trees linearised as (S (NP XX XX )NP (VP XX )VP )S, or PREFIX.actions, of an arc-standard parser:
SH LA:det SH RA:root. moses-rnn nmt train learns the one from the other like any translation. Sentences with crossing
arcs, which have no actions, are left out and counted. Exit codes: 0 done, 1 failure, 2 wrong command line, 3 treebank
rejected.
"""
REBUILD_EPILOG = """\b
Examples: bracketed trees of linearised ones; relations as factors of a text to train Moses on:
  moses-rnn nmt rebuild test.out --words test.words --as trees -o test.trees
  moses-rnn nmt rebuild corpus/train.actions --words corpus/train.en --as factors -o corpus/factored.en

WRITTEN has a line for each of --words: linearised trees for trees, arc-standard actions for conllu and factors. What is
malformed is repaired, and counted (docs/trees.md says how). Factors are word|relation; a | within either is escaped.
Exit codes: 0 done, 1 failure, 2 wrong command line, 3 texts rejected.
"""


@dataclass(frozen=True, kw_only=True)
class Linearising:
    """Options of `linearise`."""

    treebank: str
    words_only: bool
    output: str
    force: bool


@click.command(cls=Program, context_settings=CONTEXT, epilog=LINEARISE_EPILOG)
@click.argument("treebank")
@click.option("--words-only", is_flag=True, help="Write PREFIX.words alone, of every sentence")
@click.option("-o", "--output", metavar="PREFIX", required=True, help="Prefix of the texts")
@click.option("--force", is_flag=True, help="Replace existing outputs")
@reports_errors
@takes(Linearising)
def linearise(given: Linearising) -> None:
    """Write the sentences of TREEBANK, and their trees as sequences that a network can learn to write."""
    from moses_rnn.files.outputs import OutputFile, commit_all
    from moses_rnn.files.streams import find_input, without_compression_suffix

    name = find_input(given.treebank)
    dependencies = without_compression_suffix(name).suffix == ".conllu"
    lines = _lines_of_dependencies(name, given.words_only) if dependencies else _lines_of_trees(name)
    endings = ["words"] if given.words_only else ["words", "actions" if dependencies else "brackets"]
    paths = [f"{given.output}.{ending}" for ending in endings]
    written = left_out = 0
    with ExitStack() as stack:
        files = [stack.enter_context(OutputFile(path, force=given.force, inputs=(name,))) for path in paths]
        while block := list(islice(lines, LINES)):
            whole = [pair for pair in block if pair is not None]
            written, left_out = written + len(whole), left_out + len(block) - len(whole)
            for file, text in zip(files, zip(*whole, strict=True), strict=False):
                file.append(b"".join(line + b"\n" for line in text))
        if not written:
            expected = "sentences without crossing arcs" if dependencies else "trees"
            raise InputError(f"{name}: expected {expected}, found none")
        commit_all(files)
    crossing = f"; {left_out:,} with crossing arcs left out" if left_out else ""
    print_err(f"{written:,} sentences in {' and '.join(paths)}{crossing}")


def _lines_of_trees(name: str) -> Iterator[tuple[bytes, bytes] | None]:
    """Words, and what is to be learned."""
    from moses_rnn.analysis.trees import read_trees
    from moses_rnn.files.streams import read_lines

    for tree in read_trees(read_lines(name), name):
        yield b" ".join(tree.words), b" ".join(tree.tokens)


def _lines_of_dependencies(name: str, words_only: bool) -> Iterator[tuple[bytes, bytes] | None]:
    """The same; None where arcs cross."""
    from moses_rnn.analysis.dependencies import find_actions, read_conllu
    from moses_rnn.files.streams import read_lines

    for sentence in read_conllu(read_lines(name), name):
        actions = [] if words_only else find_actions(sentence)
        yield None if actions is None else (b" ".join(sentence.words), b" ".join(actions))


@dataclass(frozen=True, kw_only=True)
class Rebuilding:
    """Options of `rebuild`."""

    written: str
    words: str
    kind: str
    output: str
    force: bool


@click.command(cls=Program, context_settings=CONTEXT, epilog=REBUILD_EPILOG)
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
@reports_errors
@takes(Rebuilding)
def rebuild(given: Rebuilding) -> None:
    """Make trees, or words with factors, of what a network wrote of each line of --words."""
    from moses_rnn.table.phrase_forms import words

    sentences, written = parallel_texts(given.words, given.written)
    pieces, malformed = [], 0
    with output_to(given.output, given.force, (given.written, given.words)) as file:
        for number, (sentence, line) in enumerate(zip(sentences, written, strict=True), 1):
            text = words(sentence)
            if given.kind == "conllu" and not text:  # which it would have no line for
                raise FormatError(given.words, number, "a sentence", "a blank line")
            piece, is_malformed = _rebuilt(given.kind, words(line), text)
            pieces.append(piece)
            malformed += is_malformed
        file.append(b"".join(pieces))
        file.commit()
    print_err(f"{len(sentences):,} sentences; {malformed:,} were malformed")


def _rebuilt(kind: str, written: list[bytes], text: list[bytes]) -> tuple[bytes, bool]:
    """What becomes of a sentence, and whether what was written is malformed."""
    from moses_rnn.analysis import trees
    from moses_rnn.analysis.dependencies import format_conllu, format_factors, run_actions

    if kind == "trees":
        tree, malformed = trees.rebuild(written, text)
        return trees.format_tree(tree) + b"\n", malformed
    made = run_actions(written, text)
    piece = format_conllu(made.sentence) if kind == "conllu" else format_factors(made.sentence) + b"\n"
    return piece, made.malformed
