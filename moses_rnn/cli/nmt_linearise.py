"""moses-rnn-nmt linearise: a treebank as two line-parallel texts, from which networks learn to parse."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import click

from moses_rnn.cli.command import CONTEXT, Program, reports_errors, say, takes
from moses_rnn.errors import InputError

if TYPE_CHECKING:
    from moses_rnn.files.outputs import OutputFile

LINES = 1 << 14  # written together
WORDS, BRACKETS, ACTIONS = "words", "brackets", "actions"  # endings of the texts
TREES, CONLLU = "trees", "conllu"
EXPECTED = {TREES: "trees", CONLLU: "sentences without crossing arcs"}
EPILOG = """\b
Examples: texts of bracketed trees and of dependencies; all sentences of a test set, to be parsed:
  moses-rnn-nmt linearise train.trees -o train
  moses-rnn-nmt linearise en_ewt-ud-train.conllu -o train
  moses-rnn-nmt linearise en_ewt-ud-test.conllu -o test --words-only

Writes PREFIX.words, and PREFIX.brackets, trees linearised as (S (NP XX XX )NP (VP XX )VP )S, or PREFIX.actions, of an
arc-standard parser: SH LA:det SH RA:root. moses-rnn-nmt train learns the one from the other like any translation.
Sentences with crossing arcs, which have no actions, are left out and counted. Exit codes: 0 done, 1 failure, 2 wrong
command line, 3 treebank rejected.
"""

Lines = Iterator[tuple[bytes, bytes] | None]  # words and what is to be learned; None where that does not exist


@dataclass(frozen=True, kw_only=True)
class Linearising:
    """Options of `linearise`."""

    treebank: str
    kind: str | None
    words_only: bool
    output: str
    force: bool
    quiet: bool

    def chosen_kind(self) -> str:
        """What the treebank has, said or by its name."""
        from moses_rnn.files.streams import without_compression_suffix

        by_name = CONLLU if without_compression_suffix(self.treebank).suffix == f".{CONLLU}" else TREES
        return self.kind or by_name


@click.command(cls=Program, context_settings=CONTEXT, epilog=EPILOG)
@click.argument("treebank")
@click.option(
    "--from",
    "kind",
    type=click.Choice([TREES, CONLLU]),
    help="What the treebank has: bracketed trees, or dependencies [default: conllu if the name ends so, else trees]",
)
@click.option("--words-only", is_flag=True, help="Write PREFIX.words alone, of every sentence")
@click.option("-o", "--output", metavar="PREFIX", required=True, help="Prefix of the texts")
@click.option("--force", is_flag=True, help="Replace existing outputs")
@click.option("-q", "--quiet", is_flag=True, help="No summary on stderr")
@reports_errors
@takes(Linearising)
def linearise(given: Linearising) -> None:
    """Write the sentences of TREEBANK, and their trees as sequences that a network can learn to write."""
    from moses_rnn.files.outputs import OutputFile, commit_all
    from moses_rnn.files.streams import existing_input

    name, kind = existing_input(given.treebank), given.chosen_kind()
    lines = _lines_of_trees(name) if kind == TREES else _lines_of_dependencies(name, given.words_only)
    endings = [WORDS] if given.words_only else [WORDS, BRACKETS if kind == TREES else ACTIONS]
    paths = [f"{given.output}.{ending}" for ending in endings]
    with ExitStack() as stack:
        files = [stack.enter_context(OutputFile(path, force=given.force, inputs=(name,))) for path in paths]
        written, left_out = _write(lines, files)
        if not written:
            raise InputError(f"{name}: expected {EXPECTED[kind]}, found none")
        commit_all(files)
    if not given.quiet:
        crossing = f"; {left_out:,} with crossing arcs left out" if left_out else ""
        say(f"{written:,} sentences in {' and '.join(paths)}{crossing}")


def _lines_of_trees(name: str) -> Lines:
    from moses_rnn.files.streams import read_lines
    from moses_rnn.formats.trees import read_trees

    for tree in read_trees(read_lines(name), name):
        yield b" ".join(tree.words), b" ".join(tree.tokens)


def _lines_of_dependencies(name: str, words_only: bool) -> Lines:
    from moses_rnn.files.streams import read_lines
    from moses_rnn.formats.conllu import read_conllu
    from moses_rnn.formats.transitions import find_actions

    for sentence in read_conllu(read_lines(name), name):
        actions = [] if words_only else find_actions(sentence)
        yield None if actions is None else (b" ".join(sentence.words), b" ".join(actions))


def _write(lines: Lines, files: list[OutputFile]) -> tuple[int, int]:
    """Write one or both texts; returns how many sentences there are, and how many have no actions."""
    written = left_out = 0
    while block := list(islice(lines, LINES)):
        whole = [pair for pair in block if pair is not None]
        written, left_out = written + len(whole), left_out + len(block) - len(whole)
        for file, text in zip(files, zip(*whole, strict=True), strict=False):
            file.append(b"".join(line + b"\n" for line in text))
    return written, left_out
