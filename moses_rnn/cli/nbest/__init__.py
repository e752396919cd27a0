"""moses-rnn nbest: features for n-best lists, their weights, and the best hypotheses by them."""

from __future__ import annotations

import click

from moses_rnn.cli.command import CONTEXT, ProgramGroup
from moses_rnn.cli.nbest.add import add
from moses_rnn.cli.nbest.rerank import rerank
from moses_rnn.cli.nbest.tune import tune

EPILOG = """\b
Example: two features for both lists, weights from the first, the second translated with them:
  moses-rnn nbest dev.nbest.gz --source dev.en --add cslm --add phrase-table.rnn-model -o dev.more.gz
  moses-rnn nbest test.nbest.gz --source test.en --add cslm --add phrase-table.rnn-model -o test.more.gz
  moses-rnn nbest tune dev.more.gz --reference dev.fr -o weights.ini
  moses-rnn nbest rerank test.more.gz weights.ini > test.out

\b
Lists are Moses's (-n-best-list FILE 100 distinct, best with -include-segmentation-in-n-best), plain or compressed; - is
stdin. `moses-rnn nbest NBEST …` is short for `moses-rnn nbest add NBEST …`.
"""


class _AddByDefault(ProgramGroup):
    """A group whose ``add`` may be left out."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("--help", "-h", "--version"):
            args = ["add", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_AddByDefault, context_settings=CONTEXT, epilog=EPILOG)
def main() -> None:
    """Add features to Moses's n-best lists, tune their weights, choose by them."""


for command in (add, tune, rerank):
    main.add_command(command)
