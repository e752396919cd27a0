"""moses-rnn nmt train: two texts in, the folder of a network that reads whole sentences out."""

from __future__ import annotations

from moses_rnn.cli.command import STOPPED, check_inputs, command
from moses_rnn.cli.training import check_options, run_training, say_next, shown_presets, takes_settings
from moses_rnn.training.networks import Learning, RunOptions, SentenceOptions, networks_of

EPILOG = f"""\b
Example: train for at most an hour on a laptop, add an n-best feature, and translate:
  moses-rnn nmt train corpus/train --source en --target fr --dev corpus/dev --model search
  moses-rnn nbest dev.100best.gz --source corpus/dev.en --add search -o dev.search.gz
  moses-rnn nmt translate --model search < corpus/test.en > test.fr
On all GPUs of a machine (docs/training.md):
  torchrun --standalone --nproc-per-node gpu --no-python moses-rnn nmt train corpus/train --source en --target fr \\
    --dev corpus/dev --model search

{shown_presets(*networks_of("sentences"))}
Give the texts tokenised and escaped, as Moses sees them. After any interruption, even kill -9, run the same command
again: it continues where it stopped. Exit codes: 0 done, 1 failure, 2 wrong command line, 3 texts or model rejected,
{STOPPED} stopped and resumable.
"""


@command(EPILOG)
@takes_settings
def train(texts: SentenceOptions, learning: Learning, run: RunOptions) -> None:
    """Train a network on the sentences of PREFIX.SOURCE and PREFIX.TARGET."""
    options = check_options(texts, learning, run)
    dev, endings = texts.dev or texts.prefix, (texts.source, texts.target)
    check_inputs(*(f"{prefix}.{ending}" for prefix in (texts.prefix, dev) for ending in endings))
    check_inputs(texts.alignment, texts.dev_alignment)
    run_training(options)
    text = f"{dev}.{endings[texts.inverse]}"
    say_next("moses-rnn", "nmt", "translate", text, "--model", texts.model, quiet=run.quiet)
