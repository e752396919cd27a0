"""moses-rnn nbest: features for n-best lists, their weights, and the best hypotheses by them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import click

from moses_rnn.cli.command import (
    CONTEXT,
    ProgramGroup,
    StopRequest,
    check_inputs,
    choose_device,
    command,
    inputs_of,
    print_err,
    warn,
)
from moses_rnn.cli.inputs import output_to, text_of
from moses_rnn.errors import MosesRnnError, number_of
from moses_rnn.nbest.request import ListRequest
from moses_rnn.options import Force, Option

if TYPE_CHECKING:
    from moses_rnn.moses.nbest import NBestLine

EPILOG = """\b
Example: add two features to both lists, tune on the first, and rerank the second:
  moses-rnn nbest add dev.nbest.gz --source dev.en --add cslm --add phrase-table.rnn-model -o dev.more.gz
  moses-rnn nbest add test.nbest.gz --source test.en --add cslm --add phrase-table.rnn-model -o test.more.gz
  moses-rnn nbest tune dev.more.gz --reference dev.fr -o weights.ini
  moses-rnn nbest rerank test.more.gz weights.ini > test.out

Lists are in Moses's format (-n-best-list FILE 100 distinct, preferably with -include-segmentation-in-n-best), plain or
gzip; - is stdin.
"""


@click.group(cls=ProgramGroup, context_settings=CONTEXT, epilog=EPILOG)
def main() -> None:
    """Add features to Moses's n-best lists, tune their weights, and rerank."""


ADD_EPILOG = """\b
Examples:
  moses-rnn nbest add dev.nbest.gz --source dev.en --add cslm --backoff lm.arpa --add phrase-table.rnn-model > dev.more
  moses-rnn nbest add dev.nbest.gz --source dev.en --ensemble search.1,search.2,search.3 > dev.more

The added values are natural logarithms, except WP0 and RANK0. Every other byte of the list stays as it is, so Moses's
own scripts/nbest-rescore/ can read the result. Features have names such as RNN0, CSLM0, ENS0 and WP0; if RNN0 is taken,
the new one is RNN1.
"""


@command(ADD_EPILOG)
def add(given: ListRequest) -> None:
    """Add features to an n-best list."""
    _check(given)
    models = [str(path) if _is_file(path) else path for path in _paths(given)]
    check_inputs(given.nbest, given.source, given.backoff, *models)
    from moses_rnn.cli.progress import progress
    from moses_rnn.nbest.adding import ListFeatures, label_features, readers_of
    from moses_rnn.nbest.features import make_features

    given = replace(given, device=choose_device(given.device, given.threads))
    name, lines = _read_list(given.nbest)
    first = next(lines, None)
    sources = text_of(given.source) if given.source else None
    features = label_features(first, make_features(first, name, given))
    if sources is None and (readers := readers_of(features)):
        raise click.UsageError(f"{readers[0]} needs the source text of the list: give it with --source")
    added = ListFeatures(name, sources, features, allow_misfit=given.allow_misfit)
    inputs = inputs_of(name, given.source, given.backoff, *models)
    output = output_to(given.output, given.force, inputs)
    with progress("hypotheses", quiet=given.quiet) as advanced, output as file:
        listed = itertools.chain([first], lines) if first else lines
        for block in added.add(listed):
            file.append(block)
            advanced(added.lines, None)
        file.commit()
    if not given.quiet:
        print_err(
            f"{number_of(added.lines, 'hypothesis', 'hypotheses')} of "
            f"{number_of(added.sentences, 'sentence')}, with {', '.join(features)}"
        )
        for label, share in added.unknown.items():
            print_err(f"{label}: {share:.1%} of the hypothesis words are outside the model's shortlist")
    for label in added.constant:
        warn(f"{label} is the same for all hypotheses of each sentence: leave it out, because tuning cannot use it")


def _paths(given: ListRequest) -> list[Path]:
    """Return the folders of networks, and the files of n-gram models and of words."""
    return [*given.models, *filter(None, [given.word_penalty])]


def _is_file(path: Path) -> bool:
    return not path.is_dir() and (path.exists() or Path(f"{path}.gz").exists())


def _check(given: ListRequest) -> None:
    if not _paths(given):
        raise click.UsageError("nothing to add: give --add MODEL, --ensemble or --word-penalty")
    if given.backoff and not given.add:
        raise click.UsageError(
            "--backoff is the n-gram model that a language model backs off to: give a language model with --add"
        )
    if given.whole and not given.models:
        raise click.UsageError("--whole says how a network scores: give a network with --add")
    if given.combine and not given.ensembles:
        raise click.UsageError("--combine needs --ensemble")


def _read_list(nbest: str) -> tuple[str, Iterator[NBestLine]]:
    """Return the name of a list and its lines."""
    from moses_rnn.files.streams import find_input, read_lines
    from moses_rnn.moses.nbest import parse_nbest

    name = find_input(nbest)
    return name, parse_nbest(read_lines(name), name)


TUNE_EPILOG = """\b
Example:
  moses-rnn nbest tune dev.more.gz --reference dev.fr -o weights.ini

The search starts from --weights, such as a moses.ini. Without it, the search starts from the weights that made the
list, recovered from its totals. Added features start at 0.
"""


@command(TUNE_EPILOG)
def tune(
    nbest: str,
    *,
    references: Annotated[tuple[str, ...], Option("Reference translation; repeat it for several", "--reference")],
    weights: Annotated[
        str | None, Option("Ini with the starting weights; required for lists with sparse features")
    ] = None,
    optimiser: Annotated[
        Literal["mert", "kbmira"],
        Option("Minimum error rate training in this package, or kbmira (batch MIRA) from the Moses in MOSES_ROOT"),
    ] = "mert",
    seed: Annotated[int, Option("Seed for mert's restarts", min=0)] = 1,
    output: Annotated[str, Option("Ini for the new weights", "-o --output")] = "-",
    force: Force = False,
) -> None:
    """Tune feature weights on an n-best list for high BLEU."""
    check_inputs(nbest, *references, weights)
    from moses_rnn.files.streams import is_gzip
    from moses_rnn.moses.decoding import Moses
    from moses_rnn.nbest.lists import bleu_of
    from moses_rnn.nbest.tune import ROUNDING, read_start
    from moses_rnn.nbest.tune import tune as tune_weights
    from moses_rnn.nbest.weights import format_ini, read_weights

    if is_gzip(output):
        raise click.UsageError(f"{output}: expected a name without .gz: Moses reads no compressed ini")
    name, lines = _read_list(nbest)
    given = read_weights(weights) if weights else None
    inputs = (name, *inputs_of(*references), *(given.files if given else ()))
    with output_to(output, force, inputs) as file:
        start = read_start(lines, [text_of(reference) for reference in references], name, given)
        points = start.points
        if points.missing:
            warn(f"sentences without a hypothesis, counted as empty translations: {len(points.missing)}")
        _warn_of_unused(start.unused, weights, name)
        if start.residual > ROUNDING:
            then = "so the weights that made it are unknown; give them with --weights"
            _warn_of_hidden(start.residual, name, then)
        elif start.hidden:
            _warn_of_hidden(start.hidden, name, "which tuning ignores")
        moses, stop = Moses.of_environment(), StopRequest()
        tuned = tune_weights(points, start.weights, optimiser, moses=moses, should_stop=stop, seed=seed)
        if stop():
            raise MosesRnnError("stopped before the search ended; nothing was written")
        file.commit(format_ini(points.names, tuned, given.sparse if given else None))
    before, after = (100 * bleu_of(points, by) for by in (start.weights, tuned))
    print_err(f"{optimiser}, seed {seed}: BLEU {before:.2f} before, {after:.2f} after")
    for label in points.constant:
        then = "tuning only scales its weight" if weights else "its weight is 0; to keep the decoder's, give --weights"
        warn(f"{label} is the same for all hypotheses of each sentence: {then}")


def _warn_of_unused(labels: list[str], weights: str | None, name: str) -> None:
    if labels:
        warn(f"{weights}: has weights of {', '.join(labels)}, which {name} lacks")


def _warn_of_hidden(score: float, name: str, then: str) -> None:
    warn(f"the totals of {name} contain scores that it does not show (up to {score:.3g}), {then}")


RERANK_EPILOG = """\b
Example:
  moses-rnn nbest rerank test.more.gz weights.ini --reference test.fr > test.out

--even LSTM0 takes no weights. It adds this feature to the decoder's total, as Sutskever et al. (2014, section 3.4)
average the two. The result depends on the scale of the weights that made the list.
"""


@command(RERANK_EPILOG)
def rerank(
    nbest: str,
    weights: str | None = None,
    *,
    even: Annotated[
        str | None, Option("Instead of weights: rank by the decoder's total plus this feature, such as LSTM0")
    ] = None,
    references: Annotated[
        tuple[str, ...],
        Option(
            "Reference, for BLEU before and after reranking, and of the oracle; repeat it for several", "--reference"
        ),
    ] = (),
    segments: Annotated[
        bool, Option("Print phrases with their source positions, as -report-segmentation does")
    ] = False,
    output: Annotated[str, Option("The best hypotheses, one line per sentence", "-o --output")] = "-",
    force: Force = False,
) -> None:
    """Print the best hypothesis of each sentence. WEIGHTS is an ini with the weights of all features."""
    if (weights is None) == (even is None):
        raise click.UsageError("give either the WEIGHTS to choose by or --even FEATURE")
    check_inputs(nbest, weights, *references)
    from moses_rnn.nbest.rerank import (
        WeightedSum,
        choose_hypotheses,
        compare_bleu,
        count_sentences,
        format_segments,
        list_translations,
        score_evenly,
    )
    from moses_rnn.nbest.weights import read_weights

    name, lines = _read_list(nbest)
    chosen_by = read_weights(weights) if weights else None
    with output_to(output, force, (name, *(chosen_by.files if chosen_by else ()), *inputs_of(*references))) as file:
        kept = list(lines) if references else lines
        if chosen_by:
            scoring = WeightedSum(name, chosen_by)
            best = choose_hypotheses(scoring.score(kept), name)
            hidden = scoring.find_hidden()
            _warn_of_unused(scoring.unused, weights, name)
            if hidden:
                _warn_of_hidden(hidden, name, "which the weights ignore")
        else:
            best = choose_hypotheses(score_evenly(kept, str(even), name), name)
        texts = [text_of(reference) for reference in references]
        sentences = len(texts[0]) if texts else count_sentences(best, name)
        if texts:
            chosen = list_translations(best, sentences)
            first, reranked, at_best = compare_bleu(kept, texts, name, chosen)
            print_err(f"BLEU {first:.2f} before, {reranked:.2f} reranked, {at_best:.2f} at best (oracle)")
        if missing := sentences - len(best):
            warn(f"sentences without a hypothesis, whose lines are empty: {missing}")
        translated = format_segments(best, sentences, name) if segments else list_translations(best, sentences)
        file.commit(b"".join(line + b"\n" for line in translated))


for subcommand in (add, tune, rerank):
    main.add_command(subcommand)
