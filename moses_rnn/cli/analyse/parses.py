"""moses-rnn-analyse brackets, attachments: trees that networks wrote, compared with a treebank's."""

from __future__ import annotations

from dataclasses import dataclass

import click

from moses_rnn.cli.analyse.options import layout_option, named_files
from moses_rnn.cli.command import CONTEXT, Program, put, reports_errors, takes
from moses_rnn.cli.files import text_of
from moses_rnn.errors import InputError

BRACKETS_EPILOG = """\b
Example: two networks that learned words -> brackets (moses-rnn-nmt linearise made their texts):
  moses-rnn-analyse brackets test.trees search.brackets lstm.brackets

OUTPUT has linearised trees, (S (NP XX )NP (VP XX )VP )S, a line for each tree of GOLD. What is no tree is repaired, and
counted as malformed. All brackets count, the root's and those of punctuation too. Below the outputs stand two baselines
that do not look at the words, with the commonest labels of GOLD: the root alone, and a bracket from each word to the
end. Exit codes: 0 done, 1 failure, 2 wrong command line, 3 trees or outputs rejected.
"""
ATTACHMENTS_EPILOG = """\b
Example: two networks that learned words -> actions (moses-rnn-nmt linearise made their texts):
  moses-rnn-analyse attachments test.conllu search.actions lstm.actions

OUTPUT has arc-standard actions, SH LA:det RA:root ..., a line for each sentence of GOLD. Actions that are not possible
are skipped, words that are left over hang on the root; outputs with either are malformed. All words count, punctuation
too. Below the outputs stand two baselines that do not look at the words: each word on the one before it, or on the next
one, with the commonest relation of GOLD. Exit codes: 0 done, 1 failure, 2 wrong command line, 3 trees or outputs
rejected.
"""


@dataclass(frozen=True, kw_only=True)
class ParsesRequest:
    """What the command line asks for."""

    gold: str
    outputs: tuple[str, ...]
    layout: str


@click.command(cls=Program, context_settings=CONTEXT, epilog=BRACKETS_EPILOG)
@click.argument("gold")
@click.argument("outputs", metavar="OUTPUT...", nargs=-1, required=True)
@layout_option
@reports_errors
@takes(ParsesRequest)
def brackets(request: ParsesRequest) -> None:
    """Compare linearised trees OUTPUT with the bracketed ones of GOLD: precision, recall, F1, malformed ones."""
    from moses_rnn.analysis.brackets import as_grid, compare_brackets
    from moses_rnn.files.streams import existing_input, read_lines
    from moses_rnn.formats.grids import LAYOUTS
    from moses_rnn.formats.trees import read_trees

    name = existing_input(request.gold)
    gold = list(read_trees(read_lines(name), name))
    if not gold:
        raise InputError(f"{name}: expected trees, found none")
    outputs = {key: text_of(path) for key, path in named_files(request.outputs).items()}
    put(LAYOUTS[request.layout](as_grid(compare_brackets(gold, outputs))))


@click.command(cls=Program, context_settings=CONTEXT, epilog=ATTACHMENTS_EPILOG)
@click.argument("gold")
@click.argument("outputs", metavar="OUTPUT...", nargs=-1, required=True)
@layout_option
@reports_errors
@takes(ParsesRequest)
def attachments(request: ParsesRequest) -> None:
    """Compare actions OUTPUT with the dependencies of GOLD, a CoNLL-U file: UAS, LAS, malformed ones."""
    from moses_rnn.analysis.attachments import as_grid, compare_attachments
    from moses_rnn.files.streams import existing_input, read_lines
    from moses_rnn.formats.conllu import read_conllu
    from moses_rnn.formats.grids import LAYOUTS

    name = existing_input(request.gold)
    gold = list(read_conllu(read_lines(name), name))
    if not gold:
        raise InputError(f"{name}: expected sentences, found none")
    outputs = {key: text_of(path) for key, path in named_files(request.outputs).items()}
    put(LAYOUTS[request.layout](as_grid(compare_attachments(gold, outputs))))


PARSE_COMMANDS = (brackets, attachments)
