"""moses-rnn nmt: networks that read whole sentences."""

from __future__ import annotations

import click

from moses_rnn.cli.command import CONTEXT, ProgramGroup
from moses_rnn.cli.nmt_dictionary import dictionary
from moses_rnn.cli.nmt_train import train
from moses_rnn.cli.nmt_translate import translate
from moses_rnn.cli.nmt_trees import linearise, rebuild

EPILOG = """\b
Example: a network, a text translated by it, and the log-probabilities of given translations:
  moses-rnn nmt train corpus/train --source en --target fr --model search
  moses-rnn nmt translate test.en --model search > test.out
  paste test.en test.fr | moses-rnn-score - --format tsv --model search -o test.scored
"""


@click.group(cls=ProgramGroup, context_settings=CONTEXT, epilog=EPILOG)
def main() -> None:
    """Train a network that reads whole sentences, and translate with it alone."""


for command in (train, translate, dictionary, linearise, rebuild):
    main.add_command(command)
