"""moses-rnn: all commands under one name, each imported when it is called, so that --help is quick."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import click

from moses_rnn.cli.command import CONTEXT, ProgramGroup, shows_version

COMMANDS = {
    "train": "Train a network on a phrase table",
    "score": "Add the network's score to a phrase table",
    "validate": "Check that a table is sound",
    "merge": "Merge scored shards into one table",
    "ini": "Write a moses.ini that loads a scored table",
    "verify": "Compare a table with what Moses sees",
    "reranker": "Rerank Moses's n-best lists: build a reranker, translate, serve",
    "nbest": "Add features to n-best lists, tune their weights, rerank",
    "cslm": "Train and evaluate language models of the target side",
    "nmt": "Train networks on whole sentences, translate",
    "sample": "Propose target phrases with the network alone",
    "extend": "Add new phrase pairs to a table, proposed by the network",
    "analyse": "Show what the network learned: tables, figures, a report",
    "pipeline": "Build and compare systems from a corpus",
    "tokenise": "Tokenise raw text for Moses",
}
EPILOG = """\b
Example: a reranker for a tuned Moses system; one more score in a phrase table; all options of a command:
  moses-rnn reranker train tuned/moses.ini --texts train --dev dev --source en --target fr -o reranker
  moses-rnn train phrase-table.gz
  moses-rnn score phrase-table.gz --moses-ini moses.ini
  moses-rnn score --help

moses-rnn-train and moses-rnn-score are also separate programs. To complete commands, options and files in bash:

\b
  eval "$(_MOSES_RNN_COMPLETE=bash_source moses-rnn)"
"""


class _Together(ProgramGroup):
    """All commands, none of them imported before it is called."""

    def list_commands(self, _context: click.Context) -> list[str]:
        """List the commands in the order in which they are used."""
        return list(COMMANDS)

    def get_command(self, _context: click.Context, name: str) -> click.Command | None:
        """Import the command of that name."""
        if name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"moses_rnn.cli.{name}").main
        return command

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, which from here on is the program that messages name."""
        name, command, rest = super().resolve_command(context, args)
        if name is not None:
            sys.argv[0] = str(Path(sys.argv[0]).with_name(f"{context.info_name} {name}"))
        return name, command, rest

    def format_commands(self, _context: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from this file alone, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(cls=_Together, context_settings=CONTEXT, epilog=EPILOG)
@shows_version
def main() -> None:
    """Neural features for phrase-based translation with Moses.

    In these pages, "the paper" is Cho et al. (EMNLP 2014).
    """
