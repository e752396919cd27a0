"""moses-rnn nbest rerank: the best hypothesis of each sentence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from moses_rnn.cli.command import CONTEXT, Program, print_err, reports_errors, takes
from moses_rnn.cli.nbest.files import parsed_list
from moses_rnn.cli.options import output_to, text_of

if TYPE_CHECKING:
    from moses_rnn.moses.nbest import NBestLine

EPILOG = """\b
Example:
  moses-rnn nbest rerank test.more.gz weights.ini --reference test.fr > test.out

\b
--even LSTM0 takes no weights: it adds a feature to the decoder's total, as Sutskever et al. (2014, section 3.4) average
both. What that gives depends on the scale of the weights that the list was made with.
"""


@dataclass(frozen=True, kw_only=True)
class Reranking:
    """Options of `rerank`."""

    nbest: str
    weights: str | None
    even: str | None
    references: tuple[str, ...]
    segments: bool
    output: str
    force: bool


@click.command(cls=Program, context_settings=CONTEXT, epilog=EPILOG)
@click.argument("nbest")
@click.argument("weights", required=False)
@click.option("--even", help="In place of weights: choose by the decoder's total plus this feature, LSTM0 say")
@click.option("--reference", "references", multiple=True, help="Also say the BLEU: before, after, at best; repeat it")
@click.option("--segments", is_flag=True, help="Print phrases with their source words, as -report-segmentation does")
@click.option("-o", "--output", default="-", show_default=True, help="The best hypotheses, a line a sentence")
@click.option("--force", is_flag=True, help="Replace an existing output")
@reports_errors
@takes(Reranking)
def rerank(given: Reranking) -> None:
    """Print each sentence's best hypothesis by an ini's weights."""
    if (given.weights is None) == (given.even is None):
        raise click.UsageError("give either the WEIGHTS to choose by or --even FEATURE")
    from moses_rnn.tuning.reranking import compare_bleu, format_segments, list_translations

    name, lines = parsed_list(given.nbest)
    with output_to(given.output, given.force, (name, *filter(None, [given.weights]), *given.references)) as file:
        kept = list(lines) if given.references else lines
        best = _chosen(kept, name, given)
        texts = [text_of(reference) for reference in given.references]
        sentences = len(texts[0]) if texts else 1 + max(best)
        if texts:
            chosen = list_translations(best, sentences)
            first, reranked, at_best = compare_bleu(kept, texts, name, chosen)
            print_err(f"BLEU {first:.2f} of the list's first, {reranked:.2f} reranked, {at_best:.2f} at best (oracle)")
        translated = format_segments(best, sentences, name) if given.segments else list_translations(best, sentences)
        file.append(b"".join(line + b"\n" for line in translated))
        file.commit()


def _chosen(lines: Iterable[NBestLine], name: str, given: Reranking) -> dict[int, NBestLine]:
    """The best hypotheses."""
    from moses_rnn.tuning.reranking import choose_evenly, choose_hypotheses
    from moses_rnn.tuning.weights import read_weights

    if given.even:
        return choose_evenly(lines, given.even, name)
    assert given.weights is not None
    return choose_hypotheses(lines, read_weights(given.weights), name)
