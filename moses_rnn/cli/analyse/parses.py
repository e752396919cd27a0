"""moses-rnn analyse parses: trees that networks wrote, compared with a treebank's."""

from __future__ import annotations

from typing import Annotated

from moses_rnn.cli.analyse.options import Layout, named_files
from moses_rnn.cli.command import command, print_out
from moses_rnn.cli.options import text_of
from moses_rnn.options import Argument

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


@command(EPILOG)
def parses(gold: str, outputs: Annotated[tuple[str, ...], Argument("OUTPUT...")], *, layout: Layout = "text") -> None:
    """Compare OUTPUT with the trees of GOLD: F1 of bracketed trees, UAS and LAS of CoNLL-U, malformed ones."""
    from moses_rnn.analysis.grids import LAYOUTS
    from moses_rnn.analysis.parses import compare_parses
    from moses_rnn.files.streams import find_input, read_lines

    name = find_input(gold)
    lines = list(read_lines(name))
    texts = {key: text_of(path) for key, path in named_files(outputs).items()}
    print_out(LAYOUTS[layout](compare_parses(lines, name, texts)))
