"""moses-rnn-nmt: networks that read whole sentences."""

from __future__ import annotations

import click

from moses_rnn.cli.command import CONTEXT, ProgramGroup, shows_version
from moses_rnn.cli.nmt_dictionary import dictionary
from moses_rnn.cli.nmt_score import score
from moses_rnn.cli.nmt_train import train
from moses_rnn.cli.nmt_translate import translate
from moses_rnn.cli.nmt_trees import linearise, rebuild

EPILOG = """\b
Example: a network, a text translated by it, and what it makes of a given translation:
  moses-rnn-nmt train corpus/train --source en --target fr --model search
  moses-rnn-nmt translate search test.en > test.out
  moses-rnn-nmt score search test.en test.fr > test.scores
"""


@click.group(cls=ProgramGroup, context_settings=CONTEXT, epilog=EPILOG)
@shows_version
def main() -> None:
    """Train a network that reads whole sentences, translate with it alone, score translations with it."""


for command in (train, translate, score, dictionary, linearise, rebuild):
    main.add_command(command)
