"""moses-rnn-nmt: networks that read whole sentences."""

from __future__ import annotations

import click

from moses_rnn.cli.command import CONTEXT, ProgramGroup, shows_version
from moses_rnn.cli.nmt_score import score
from moses_rnn.cli.nmt_translate import translate

EPILOG = """\b
Example: a text translated, and what the network makes of a given translation:
  moses-rnn-nmt translate en-fr.model test.en > test.out
  moses-rnn-nmt score en-fr.model test.en test.fr > test.scores
"""


@click.group(cls=ProgramGroup, context_settings=CONTEXT, epilog=EPILOG)
@shows_version
def main() -> None:
    """Translate with a network alone, or score translations with it."""


for command in (translate, score):
    main.add_command(command)
