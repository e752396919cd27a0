"""moses-rnn-nbest add: features for n-best lists."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moses_rnn.cli.command import (
    CONTEXT,
    Program,
    choose_device,
    reports_errors,
    say,
    takes,
    threads_option,
)
from moses_rnn.cli.files import check_inputs, inputs_of, output_to, text_of
from moses_rnn.cli.nbest.files import parsed_list
from moses_rnn.cli.pool_options import PoolOptions, make_pool_request, parse_shard, pool_options, with_shard
from moses_rnn.cli.table_options import long_option

if TYPE_CHECKING:
    from moses_rnn.formats.nbest import NBestLine
    from moses_rnn.pools.base import Pool
    from moses_rnn.scoring.nbest_features import FeatureJob, FeatureRequest
    from moses_rnn.scoring.nbest_lists import ListPart, Values

EPILOG = """\b
Example:
  moses-rnn-nbest dev.nbest.gz --source dev.en --add cslm --backoff lm.arpa --add phrase-table.rnn-model > dev.more
  moses-rnn-nbest dev.nbest.gz --source dev.en --ensemble rnnlm.1,rnnlm.2,rnnlm.3 > dev.more

\b
Values are natural logarithms; every other byte of the list stays as it is, so that Moses's own
scripts/nbest-rescore/ read the result. Features are named CSLM0, KENLM0, RNN0, WP0, with the next number where the list
has one of that name.
"""


@dataclass(frozen=True, kw_only=True)
class Adding(PoolOptions):
    """Options of `add`."""

    nbest: str
    source: str | None
    add: tuple[Path, ...]
    ensembles: tuple[str, ...]
    combine: str | None
    shares: str | None
    backoff: str | None
    rare: str | None
    vocabulary: str | None
    whole: bool
    long_phrases: str
    word_penalty: Path | None
    word_penalty_words: int | None
    output: str
    device: str
    precision: str
    threads: int | None
    allow_misfit: bool
    force: bool
    quiet: bool


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
    help="Of the language models of an --ensemble in the mean of p, with commas between [default: equal ones]",
)
@click.option("--whole", is_flag=True, help="Score whole sentences with networks of pairs, whatever their phrases")
@long_option
@click.option(
    "--backoff", help="An ARPA file that shares out a language model's <unk> among the words outside its shortlist"
)
@click.option("--rare", type=click.Choice(["uniform"]), help="Share <unk> evenly among the words outside instead")
@click.option("--vocabulary", help="With --rare: a text that has these words")
@click.option(
    "--word-penalty",
    type=click.Path(path_type=Path),
    help="Add minus the number of words outside the shortlist of this model or vocabulary file: WP0",
)
@click.option("--word-penalty-words", type=click.IntRange(1), help="Only its N most frequent words")
@click.option("-o", "--output", default="-", show_default=True, help="The new list, compressed if its suffix says so")
@click.option("--device", default="auto", show_default=True, help="cpu, cuda, cuda:1 …")
@click.option("--precision", type=click.Choice(["fp32", "bf16", "fp64"]), default="fp32", show_default=True)
@threads_option
@click.option(
    "--allow-misfit",
    is_flag=True,
    help="Accept a model that has learned nothing, or that knows less than half of the words",
)
@click.option("--force", is_flag=True, help="Replace an existing output")
@click.option("-q", "--quiet", is_flag=True, help="No progress on stderr")
@pool_options
@reports_errors
@takes(Adding)
def add(given: Adding) -> None:
    """Add features to an n-best list."""
    _check(given)
    check_inputs(given.nbest, given.source, given.backoff, given.vocabulary, *_models(given))
    import torch

    from moses_rnn.cli.progress import Display
    from moses_rnn.scoring.nbest_features import FeatureJob, make_features
    from moses_rnn.scoring.nbest_lists import NBestReport, label_features, with_features

    if given.threads:
        torch.set_num_threads(given.threads)
    shard = parse_shard(given)
    name, lines = parsed_list(given.nbest, shard)
    first = next(lines, None)
    sources = text_of(given.source) if given.source else None
    request = _feature_request(given)
    features = label_features(first, make_features(first, name, request))
    readers = [feature.label for feature in features if feature.feature.of_sources]
    if sources is None and readers:
        raise click.UsageError(f"{readers[0]} needs the source text of the list: give it with --source")
    pool = _pool(given, FeatureJob(request, first, name), request.device)
    report = NBestReport(whole=shard is None, allow_misfit=given.allow_misfit)
    display = Display("hypotheses", quiet=given.quiet)
    inputs = inputs_of(name, given.source, given.backoff, given.vocabulary)
    with output_to(with_shard(given.output, shard), given.force, inputs) as file:
        for block in with_features(_behind(first, lines), sources, features, name, report, pool):
            file.append(block)
            display.show(report.lines)
        file.commit()
    display.close()
    if not given.quiet:
        say(f"{report.lines:,} hypotheses of {report.sentences:,} sentences, with {', '.join(report.choosing)}")
        for label, share in report.unknown.items():
            say(f"{label}: {share:.1%} of the hypothesis words are outside the model's shortlist")
    for label in report.constant:
        say(f"warning: {label} is the same for all hypotheses of each sentence: leave it out, no tuning can use it")


def _models(given: Adding) -> Iterator[Path | str]:
    """Folders of networks; files of n-gram models, and of words."""
    members = (Path(member) for members in given.ensembles for member in members.split(","))
    for path in (*members, *given.add, *filter(None, [given.word_penalty])):
        yield path if path.is_dir() or not path.exists() else str(path)


def _pool(given: Adding, job: FeatureJob, device: str) -> Pool[ListPart, Values] | None:
    """Who gives the values, if it is not this process."""
    from dataclasses import replace

    import torch

    from moses_rnn.pools.choice import open_pool_elsewhere

    wanted = make_pool_request(given)
    if not wanted.is_elsewhere:
        return None
    threads = max((given.threads or torch.get_num_threads()) // wanted.processes, 1) if wanted.processes else 1
    return open_pool_elsewhere(wanted, replace(job, threads=threads), [device])


def _feature_request(given: Adding) -> FeatureRequest:
    from moses_rnn.scoring.nbest_features import FeatureRequest

    return FeatureRequest(
        add=given.add,
        ensembles=tuple(tuple(map(Path, folders.split(","))) for folders in given.ensembles),
        combination=given.combine,
        shares=_numbers(given.shares),
        backoff=given.backoff,
        rare=given.vocabulary,
        whole=given.whole,
        floors_long=given.long_phrases == "floor",
        word_penalty=given.word_penalty,
        word_penalty_words=given.word_penalty_words,
        device=choose_device(given.device),
        precision=given.precision,
        allow_misfit=given.allow_misfit,
    )


def _check(given: Adding) -> None:
    """Refuse what does not go together."""
    if given.shard and "-" in (given.nbest, given.output):
        raise click.UsageError("--shard needs a list and an --output that are files")
    if given.nbest == given.source == "-":
        raise click.UsageError("only one of the list and --source can be -")
    if not any((given.add, given.ensembles, given.word_penalty)):
        raise click.UsageError("nothing to add: give --add MODEL, --ensemble or --word-penalty")
    if given.backoff and not (given.add or given.ensembles):
        raise click.UsageError("--backoff is the n-gram model that a CSLM backs off to: give one with --add")
    _check_language_models(given)
    if given.whole and not (given.add or given.ensembles):
        raise click.UsageError("--whole says how networks of pairs score: give one with --add")
    if given.word_penalty_words and not given.word_penalty:
        raise click.UsageError("--word-penalty-words is for --word-penalty")
    _numbers(given.shares)


def _check_language_models(given: Adding) -> None:
    """The same, of what language models do."""
    _check_ensembles(given)
    if given.vocabulary == "-":
        raise click.UsageError("--vocabulary needs a file: it is read for each model")
    if bool(given.rare) != bool(given.vocabulary):
        raise click.UsageError("--rare uniform and --vocabulary, the text that has the rare words, go together")
    if given.rare and given.backoff:
        raise click.UsageError("--rare and --backoff both share out <unk>: give one of them")


def _check_ensembles(given: Adding) -> None:
    """The same, of ensembles."""
    for option, value in (("--shares", given.shares), ("--combine", given.combine)):
        if value and not given.ensembles:
            raise click.UsageError(f"{option} is for --ensemble")
    for folders in given.ensembles:
        if not all(folders.split(",")):
            raise click.UsageError(f"--ensemble {folders}: expected models with commas between, found an empty name")


def _numbers(text: str | None) -> tuple[float, ...]:
    try:
        return tuple(float(number) for number in text.split(",")) if text else ()
    except ValueError as error:
        raise click.UsageError(f"--shares {text}: expected numbers with commas between") from error


def _behind(first: NBestLine | None, lines: Iterator[NBestLine]) -> Iterator[NBestLine]:
    if first is not None:
        yield first
        yield from lines
