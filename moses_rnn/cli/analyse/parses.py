"""moses-rnn analyse parses: trees that networks wrote, compared with a treebank's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from moses_rnn.cli.analyse.options import layout_option, named_files
from moses_rnn.cli.command import CONTEXT, Program, put, reports_errors, takes
from moses_rnn.cli.files import text_of
from moses_rnn.errors import InputError

if TYPE_CHECKING:
    from moses_rnn.formats.grids import Grid

EPILOG = """\b
Examples: two networks that learned words -> brackets, or words -> actions (moses-rnn nmt linearise made their texts):
  moses-rnn analyse parses test.trees search.brackets lstm.brackets
  moses-rnn analyse parses test.conllu search.actions lstm.actions

OUTPUT has a line for each tree of GOLD. Below the outputs stand two baselines that do not look at the words.
Of bracketed trees, OUTPUT has linearised ones, (S (NP XX )NP (VP XX )VP )S. What is no tree is repaired, and counted
as malformed. All brackets count, the root's and those of punctuation too. The baselines, with the commonest labels of
GOLD: the root alone, and a bracket from each word to the end.
Of CoNLL-U, OUTPUT has arc-standard actions, SH LA:det RA:root ... Actions that are not possible are skipped, words that
are left over hang on the root; outputs with either are malformed. All words count, punctuation too. The baselines, with
the commonest relation of GOLD: each word on the one before it, or on the next one.
"""


@dataclass(frozen=True, kw_only=True)
class ParsesRequest:
    """What the command line asks for."""

    gold: str
    outputs: tuple[str, ...]
    layout: str


@click.command(cls=Program, context_settings=CONTEXT, epilog=EPILOG)
@click.argument("gold")
@click.argument("outputs", metavar="OUTPUT...", nargs=-1, required=True)
@layout_option
@reports_errors
@takes(ParsesRequest)
def parses(request: ParsesRequest) -> None:
    """Compare OUTPUT with the trees of GOLD: F1 of bracketed trees, UAS and LAS of CoNLL-U, malformed ones."""
    from moses_rnn.files.streams import existing_input, read_lines
    from moses_rnn.formats.grids import LAYOUTS

    name = existing_input(request.gold)
    lines = list(read_lines(name))
    first = next((line.strip() for line in lines if line.strip()), b"")
    if not first:
        raise InputError(f"{name}: expected bracketed trees or CoNLL-U, found neither")
    outputs = {key: text_of(path) for key, path in named_files(request.outputs).items()}
    judge = _brackets if first.startswith(b"(") else _attachments
    put(LAYOUTS[request.layout](judge(lines, name, outputs)))


def _brackets(lines: Sequence[bytes], name: str, outputs: Mapping[str, Sequence[bytes]]) -> Grid:
    from moses_rnn.analysis.brackets import as_grid, compare_brackets
    from moses_rnn.formats.trees import read_trees

    return as_grid(compare_brackets(list(read_trees(lines, name)), outputs))


def _attachments(lines: Sequence[bytes], name: str, outputs: Mapping[str, Sequence[bytes]]) -> Grid:
    from moses_rnn.analysis.attachments import as_grid, compare_attachments
    from moses_rnn.formats.conllu import read_conllu

    gold = list(read_conllu(lines, name))
    if not gold:
        raise InputError(f"{name}: expected sentences, found none")
    return as_grid(compare_attachments(gold, outputs))
