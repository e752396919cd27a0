"""moses-rnn nmt: networks that read whole sentences, and dictionaries for them."""

from __future__ import annotations

from typing import Annotated

import click

from moses_rnn.cli.command import (
    CONTEXT,
    STOPPED,
    ProgramGroup,
    StopRequest,
    check_inputs,
    command,
    inputs_of,
    print_err,
)
from moses_rnn.cli.inputs import output_to
from moses_rnn.cli.nmt_translate import translate
from moses_rnn.cli.training import (
    Estimate,
    check_options,
    print_next,
    print_speed,
    run_training,
    shown_presets,
    takes_settings,
)
from moses_rnn.errors import InputError, number_of
from moses_rnn.options import Force, Option, Output
from moses_rnn.training.presets import networks_of
from moses_rnn.training.training_options import Learning, RunOptions, SentenceOptions

EPILOG = """\b
Example: train a network, translate a text with it, and score given translations:
  moses-rnn nmt train corpus/train --source en --target fr --model search
  moses-rnn nmt translate test.en --model search > test.out
  paste test.en test.fr | moses-rnn-score - --format tsv --model search -o test.scored
"""


@click.group(cls=ProgramGroup, context_settings=CONTEXT, epilog=EPILOG)
def main() -> None:
    """Train a network on whole sentences, and translate with it, without Moses."""


TRAIN_EPILOG = f"""\b
Example: train for at most an hour on a laptop, add an n-best feature, and translate:
  moses-rnn nmt train corpus/train --source en --target fr --dev corpus/dev --model search
  moses-rnn nbest add dev.100best.gz --source corpus/dev.en --add search -o dev.search.gz
  moses-rnn nmt translate --model search < corpus/test.en > test.fr
On all GPUs of a machine (docs/training.md):
  torchrun --standalone --nproc-per-node gpu --no-python moses-rnn nmt train corpus/train --source en --target fr \\
    --dev corpus/dev --model search

{shown_presets(*networks_of("sentences"))}
Texts must be tokenised and escaped, as Moses sees them. After any interruption, even kill -9, run the same command
again: it continues where it stopped. Exit codes: 0 done, 1 failure, 2 usage error, 3 texts or model refused,
{STOPPED} stopped and resumable.
"""


@command(TRAIN_EPILOG)
@takes_settings
def train(texts: SentenceOptions, learning: Learning, *, estimate: Estimate = False, run: RunOptions) -> None:
    """Train a network on parallel texts. The texts are PREFIX.SOURCE and PREFIX.TARGET."""
    options = check_options(texts, learning, run)
    dev, endings = texts.dev or texts.prefix, (texts.source, texts.target)
    sides = (f"{prefix}.{ending}" for prefix in (texts.prefix, dev) for ending in endings)
    check_inputs(*sides, texts.alignment, texts.dev_alignment)
    if estimate:
        print_speed(options)
        return
    run_training(options)
    if texts.dev:
        print_next(
            *("moses-rnn", "reranker", "train", "moses.ini", "--dev", texts.dev, "--source", texts.source),
            *("--target", texts.target, "--add", texts.model, "-o", "reranker"),
            quiet=run.quiet,
        )
    elif not texts.right_to_left:
        text = f"{dev}.{endings[texts.inverse]}"
        print_next("moses-rnn", "nmt", "translate", text, "--model", texts.model, quiet=run.quiet)


DICTIONARY_EPILOG = """\b
Example:
  moses-rnn nmt dictionary corpus/train --source en --target fr --alignment aligned.grow-diag-final-and > words.en-fr

Each line is "source target p", likeliest first, as translate --dictionary reads it; p is the link's share of all links
of the source word. Luong et al. keep links seen more than 100 times (--dictionary-count 101). Exit codes: 0 done, 1
failure, 2 usage error, 3 texts refused.
"""


@command(DICTIONARY_EPILOG)
def dictionary(
    prefix: str,
    *,
    source: Annotated[str, Option("The source text is PREFIX.SOURCE, plain or gzip")],
    target: Annotated[str, Option("The target text is PREFIX.TARGET")],
    alignment: Annotated[str, Option("Word alignment, one line per sentence pair: 0-0 1-2 …", metavar="FILE")],
    dictionary_count: Annotated[int, Option("Leave out links seen fewer times than this", min=1)] = 2,
    output: Output = "-",
    force: Force = False,
) -> None:
    """Count linked words in aligned texts."""
    check_inputs(f"{prefix}.{source}", f"{prefix}.{target}", alignment)
    from moses_rnn.moses.lexicon import count_links, lexicon_of
    from moses_rnn.training.materials import ParallelTexts, Watch

    texts = ParallelTexts.of_prefix(prefix, source, target, alignment)
    counts = count_links(texts.aligned_pairs(Watch(lambda *_: None, StopRequest())))
    lexicon = lexicon_of(counts, dictionary_count)
    if not lexicon.entries:
        most = max((count for of_word in counts.values() for count in of_word.values()), default=0)
        raise InputError(
            f"{alignment}: expected a link seen at least {number_of(dictionary_count, 'time')} (--dictionary-count), "
            f"found at most {most:,}"
        )
    with output_to(output, force, inputs_of(texts.source, texts.target, texts.links)) as file:
        file.commit(b"".join(lexicon.lines()))
    pairs = sum(map(len, lexicon.entries.values()))
    print_err(
        f"{number_of(len(lexicon.entries), 'word')} with {number_of(pairs, 'translation')}, of "
        f"{number_of(len(counts), 'linked word')}"
    )


for subcommand in (train, translate, dictionary):
    main.add_command(subcommand)
