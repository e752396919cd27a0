"""moses-rnn nbest tune: weights for the features of an n-best list."""

from __future__ import annotations

from dataclasses import dataclass

import click

from moses_rnn.cli.command import CONTEXT, Program, StopRequest, print_err, reports_errors, takes
from moses_rnn.cli.nbest.files import parsed_list
from moses_rnn.cli.options import output_to, text_of
from moses_rnn.errors import MosesRnnError
from moses_rnn.tuning import OPTIMISERS

EPILOG = """\b
Example:
  moses-rnn nbest tune dev.more.gz --reference dev.fr -o weights.ini

\b
The search begins at --weights, a moses.ini say; without it, at the weights that the list was made with, as its totals
tell them. Added features begin at 0.
"""


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Options of `tune`."""

    nbest: str
    references: tuple[str, ...]
    weights: str | None
    optimiser: str
    seed: int
    output: str
    force: bool


@click.command("tune", cls=Program, context_settings=CONTEXT, epilog=EPILOG)
@click.argument("nbest")
@click.option("--reference", "references", multiple=True, required=True, help="A reference translation; repeat it")
@click.option("--weights", help="An ini whose weights the search begins with; needed for lists with sparse features")
@click.option(
    "--optimiser",
    type=click.Choice(OPTIMISERS),
    default="mert",
    show_default=True,
    help="Minimum error rate training by this package, or kbmira (batch MIRA) of the Moses in MOSES_ROOT",
)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Draws where mert starts again")
@click.option("-o", "--output", default="-", show_default=True, help="The weights, as an ini")
@click.option("--force", is_flag=True, help="Replace an existing output")
@reports_errors
@takes(Tuning)
def tune(given: Tuning) -> None:
    """Find weights by which an n-best list gets a good BLEU."""
    from moses_rnn.moses.decoder import Moses
    from moses_rnn.tuning.lists import read_tunable
    from moses_rnn.tuning.tune import choose_start
    from moses_rnn.tuning.tune import tune as tune_weights
    from moses_rnn.tuning.weights import format_ini, read_weights

    name, lines = parsed_list(given.nbest)
    inputs = (name, *given.references, *filter(None, [given.weights]))
    with output_to(given.output, given.force, inputs) as file:
        weights = read_weights(given.weights) if given.weights else None
        sparse = weights.sparse if weights else None
        references = [text_of(reference) for reference in given.references]
        points = read_tunable(lines, references, name=name, sparse_weights=sparse)
        if points.missing:
            print_err(f"warning: {len(points.missing)} sentences have no hypothesis and count as translated by nothing")
        start = choose_start(points, weights)
        moses, stop = Moses.of_environment(), StopRequest()
        tuned = tune_weights(points, start, given.optimiser, moses=moses, should_stop=stop, seed=given.seed)
        if stop():
            raise MosesRnnError("stopped before the search had ended; nothing was written")
        file.append(format_ini(points.names, tuned.weights, sparse))
        file.commit()
    print_err(
        f"{given.optimiser}, seed {given.seed}: BLEU {100 * tuned.start_bleu:.2f} before, {100 * tuned.bleu:.2f} after"
    )
    for label in tuned.constant:
        print_err(f"warning: {label} is the same for all hypotheses of each sentence: its weight stays as it was")
