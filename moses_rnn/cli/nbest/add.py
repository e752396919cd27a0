"""moses-rnn nbest add: features for n-best lists."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import click

from moses_rnn.cli.command import (
    CONTEXT,
    Program,
    check_inputs,
    choose_device,
    inputs_of,
    print_err,
    reports_errors,
    takes,
    threads_option,
)
from moses_rnn.cli.nbest.files import parsed_list
from moses_rnn.cli.options import long_option, output_to, shard_option, text_of
from moses_rnn.score.nbest_request import ListRequest

EPILOG = """\b
Example:
  moses-rnn nbest dev.nbest.gz --source dev.en --add cslm --backoff lm.arpa --add phrase-table.rnn-model > dev.more
  moses-rnn nbest dev.nbest.gz --source dev.en --ensemble rnnlm.1,rnnlm.2,rnnlm.3 > dev.more

\b
Values are natural logarithms; every other byte of the list stays as it is, so that Moses's own
scripts/nbest-rescore/ read the result. Features are named CSLM0, KENLM0, RNN0, WP0, with the next number where the list
has one of that name.
"""


def _parse_ensembles(
    _ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[Path, ...], ...]:
    for value in values:
        if not all(value.split(",")):
            raise click.BadParameter(f"{value}: expected models with commas between, found an empty name")
    return tuple(tuple(map(Path, value.split(","))) for value in values)


def _parse_shares(_ctx: click.Context, _param: click.Parameter, value: str | None) -> tuple[float, ...]:
    try:
        return tuple(map(float, value.split(","))) if value else ()
    except ValueError as error:
        raise click.BadParameter(f"{value}: expected numbers with commas between") from error


@click.command("add", cls=Program, context_settings=CONTEXT, epilog=EPILOG)
@click.argument("nbest")
@click.option(
    "--source", help="The sentences that were translated, as the decoder read them; networks of pairs need it"
)
@click.option(
    "--add",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Add log p by this model: a folder of any network, or an n-gram model (ARPA or KenLM's binary). A network "
    "of phrase pairs scores the phrases of each hypothesis, summed; one of targets alone the hypothesis. Repeat it",
)
@click.option(
    "--ensemble",
    "ensembles",
    callback=_parse_ensembles,
    multiple=True,
    help="Add log p by several models together: their folders with commas between; of language models also n-gram "
    "models' files. Repeat it",
)
@click.option(
    "--combine",
    type=click.Choice(["geometric", "mean-log", "arithmetic"]),
    help="How the models of an --ensemble are: the normalised mean of log p, that mean itself, log of the mean of p "
    "[default: geometric; of language models arithmetic, which cannot be geometric]",
)
@click.option(
    "--shares",
    callback=_parse_shares,
    help="Of the language models of an --ensemble in the mean of p, with commas between [default: equal ones]",
)
@click.option("--whole", is_flag=True, help="Score whole sentences with networks of pairs, whatever their phrases")
@long_option
@click.option(
    "--backoff", help="An ARPA file that shares out a language model's <unk> among the words outside its shortlist"
)
@click.option(
    "--word-penalty",
    type=click.Path(path_type=Path),
    help="Add minus the number of words outside the shortlist of this model or vocabulary file: WP0",
)
@click.option("-o", "--output", default="-", show_default=True, help="The new list, compressed if its suffix says so")
@click.option("--device", default="auto", show_default=True, help="cpu, cuda, cuda:1 …")
@threads_option
@shard_option
@click.option(
    "--allow-misfit",
    is_flag=True,
    help="Accept a model that has learned nothing, or that knows less than half of the words",
)
@click.option("--force", is_flag=True, help="Replace an existing output")
@click.option("-q", "--quiet", is_flag=True, help="No progress on stderr")
@reports_errors
@takes(ListRequest)
def add(given: ListRequest) -> None:
    """Add features to an n-best list."""
    _check(given)
    models = [path if path.is_dir() or not path.exists() else str(path) for path in _paths(given)]
    check_inputs(given.nbest, given.source, given.backoff, *models)
    import torch

    from moses_rnn.cli.progress import progress
    from moses_rnn.score.nbest_features import make_features
    from moses_rnn.score.nbest_lists import ListFeatures, label_features

    if given.threads:
        torch.set_num_threads(given.threads)
    name, lines = parsed_list(given.nbest, given.shard)
    first = next(lines, None)
    sources = text_of(given.source) if given.source else None
    request = replace(given, device=choose_device(given.device))
    features = label_features(first, make_features(first, name, request))
    readers = [label for label, feature in features.items() if feature.of_sources]
    if sources is None and readers:
        raise click.UsageError(f"{readers[0]} needs the source text of the list: give it with --source")
    added = ListFeatures(name, sources, features, given.shard is None, given.allow_misfit)
    inputs = inputs_of(name, given.source, given.backoff)
    output = output_to(given.output, given.force, inputs)
    with progress("hypotheses", quiet=given.quiet) as advanced, output as file:
        listed = itertools.chain([first], lines) if first else lines
        for block in added.add(listed):
            file.append(block)
            advanced(added.lines, None)
        file.commit()
    if not given.quiet:
        print_err(f"{added.lines:,} hypotheses of {added.sentences:,} sentences, with {', '.join(added.choosing)}")
        for label, share in added.unknown.items():
            print_err(f"{label}: {share:.1%} of the hypothesis words are outside the model's shortlist")
    for label in added.constant:
        print_err(
            f"warning: {label} is the same for all hypotheses of each sentence: leave it out, no tuning can use it"
        )


def _paths(given: ListRequest) -> list[Path]:
    """Folders of networks; files of n-gram models, and of words."""
    return [*given.models, *filter(None, [given.word_penalty])]


def _check(given: ListRequest) -> None:
    """Refuse what does not go together."""
    if given.shard and "-" in (given.nbest, given.output):
        raise click.UsageError("--shard needs a list and an --output that are files")
    if given.nbest == given.source == "-":
        raise click.UsageError("only one of the list and --source can be -")
    if not _paths(given):
        raise click.UsageError("nothing to add: give --add MODEL, --ensemble or --word-penalty")
    if given.backoff and not given.models:
        raise click.UsageError("--backoff is the n-gram model that a CSLM backs off to: give one with --add")
    if given.whole and not given.models:
        raise click.UsageError("--whole says how networks of pairs score: give one with --add")
    for option, value in (("--shares", given.shares), ("--combine", given.combine)):
        if value and not given.ensembles:
            raise click.UsageError(f"{option} is for --ensemble")
