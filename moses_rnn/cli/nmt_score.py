"""moses-rnn-nmt score: log p of given translations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moses_rnn.cli.command import CONTEXT, Program, reports_errors, say, takes
from moses_rnn.cli.files import check_inputs, inputs_of, output_to, parallel_texts
from moses_rnn.cli.nmt_options import choose_compute, text_options, warn_of_unit
from moses_rnn.errors import InputError, placing

if TYPE_CHECKING:
    from moses_rnn.producers.base import ScoreProducer, Tally

LINES = 2048  # scored together

EPILOG = """\b
Example:
  moses-rnn-nmt score search test.en test.fr > test.scores
  moses-rnn-nmt score search1 search2 test.en test.fr > test.scores

A line's score is log p(target | source), natural, summed over words and the end symbol; of a model that learned the
inverse direction, log p(source | target). Words outside the shortlists count as <unk>. Exit codes: 0 done, 1 failure,
2 wrong command line, 3 texts or model rejected.
"""


@dataclass(frozen=True, kw_only=True)
class SentenceScoring:
    """Options of `score`."""

    places: tuple[str, ...]
    alignment: str | None
    output: str
    device: str
    threads: int | None
    force: bool
    quiet: bool


@click.command(cls=Program, context_settings=CONTEXT, epilog=EPILOG)
@click.argument("places", metavar="MODEL... SOURCE TARGET", nargs=-1, required=True)
@click.option(
    "--alignment", metavar="FILE", help="Word alignment of the texts, for a model that was trained with --rare"
)
@text_options
@reports_errors
@takes(SentenceScoring)
def score(given: SentenceScoring) -> None:
    """Print the log-probability of each line of TARGET as the translation of that line of SOURCE."""
    folders, source, target = _places(given.places)
    if source == target == "-":
        raise click.UsageError("only one of SOURCE and TARGET can be -")
    check_inputs(*folders, source, target, given.alignment)
    from moses_rnn.cli.progress import Display
    from moses_rnn.producers.base import Tally
    from moses_rnn.producers.ensembles import open_writer
    from moses_rnn.producers.open import model_files

    _check_alignment(folders, given, source)
    model = open_writer(folders)
    models = (path for folder in folders for path in model_files(folder))
    inputs = (*inputs_of(source, target, given.alignment), *models)
    with output_to(given.output, given.force, inputs) as output:
        sources, targets = parallel_texts(source, target)
        links = _links(given.alignment, sources, targets)
        warn_of_unit(model)
        producer = model.make_producer(choose_compute(given.device, given.threads))
        display, tally = Display("sentences", quiet=given.quiet), Tally()
        done = 0
        with placing(lambda row: f"{target}:{done + row + 1}"):
            for done, block in _scores(producer, sources, targets, links, tally):
                output.append(block)
                display.show(done, done / len(sources))
        display.close()
        output.commit()
    if not given.quiet:
        say(f"{len(sources):,} pairs, {tally.unknown:,} of them with <unk>")


def _places(places: tuple[str, ...]) -> tuple[list[Path], str, str]:
    """The models and both texts."""
    if len(places) < 3:
        raise click.UsageError(f"expected MODEL... SOURCE TARGET, found {len(places)} of them: {' '.join(places)}")
    *models, source, target = places
    return list(map(Path, models)), source, target


def _check_alignment(folders: list[Path], given: SentenceScoring, source: str) -> None:
    """Refuse to go without an alignment where a model annotates by it, before any is loaded.

    Raises:
        InputError: it needs one, and there is none.
        click.UsageError: there is one that no model needs.
    """
    from moses_rnn.producers.open import needs_alignments

    needing = [folder for folder in folders if needs_alignments(folder)]
    if needing and given.alignment is None:
        raise InputError(
            f"{source}: expected a word alignment, by which the rare words of {needing[0]} are annotated, found none",
            advice="--alignment names a file of a line for each pair: 0-0 1-2 …, positions from 0, source first.",
        )
    if given.alignment is not None and not needing:
        raise click.UsageError("--alignment is for models that were trained with --rare and an alignment")


def _links(path: str | None, sources: list[bytes], targets: list[bytes]) -> list[bytes] | None:
    """The links of each pair, if there is an alignment.

    Raises:
        InputError: they are not as many as there are pairs, or some are of other words.
    """
    if path is None:
        return None
    from moses_rnn.files.streams import existing_input, read_lines
    from moses_rnn.formats.alignments import format_links, read_links_between

    name = existing_input(path)
    return [format_links(links) for links in read_links_between(read_lines(name), name, sources, targets)]


def _scores(
    producer: ScoreProducer, sources: list[bytes], targets: list[bytes], links: list[bytes] | None, tally: Tally
) -> Iterator[tuple[int, bytes]]:
    """How many pairs are scored, and the lines of the last of them."""
    from moses_rnn.formats.text_phrases import AlignedPhrases

    for first in range(0, len(sources), LINES):
        part = slice(first, first + LINES)
        read: Sequence[bytes] = sources[part]
        if links is not None:
            read = AlignedPhrases(read, partial(tuple, links[part]))
        values = producer.log_probs(read, targets[part], tally)
        yield min(first + LINES, len(sources)), b"".join(b"%.9g\n" % value for value in values[:, 0])
