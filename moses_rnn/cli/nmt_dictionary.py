"""moses-rnn nmt dictionary: which words translate a word, counted from word alignments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from moses_rnn.cli.command import CONTEXT, Program, StopRequest, check_inputs, print_err, reports_errors, takes
from moses_rnn.errors import InputError

if TYPE_CHECKING:
    from moses_rnn.moses.lexicon import LinkCounts

    Counted = tuple[LinkCounts, tuple[str, ...]]  # and the files that were read

EPILOG = """\b
Example: of a corpus and its word alignment, or of a phrase table's pairs with one source word:
  moses-rnn nmt dictionary corpus/train --source en --target fr --alignment aligned.grow-diag-final-and > words.en-fr
  moses-rnn nmt dictionary phrase-table.gz > words.en-fr

A line is "source target p", p the link's share of all links of the source word, the likeliest first, as translate
--dictionary reads it. The paper keeps links seen more than 100 times (--dictionary-count 101). Exit codes: 0 done, 1
failure, 2 wrong command line, 3 texts or table rejected.
"""


@dataclass(frozen=True, kw_only=True)
class Counting:
    """Options of `dictionary`."""

    corpus: str
    source: str | None
    target: str | None
    alignment: str | None
    dictionary_count: int
    output: str
    force: bool


@click.command(cls=Program, context_settings=CONTEXT, epilog=EPILOG)
@click.argument("corpus", metavar="PREFIX|TABLE")
@click.option("--source", help="The source text is PREFIX.SOURCE, plain or compressed")
@click.option("--target", help="The target text is PREFIX.TARGET")
@click.option("--alignment", metavar="FILE", help="Their word alignment, a line for each pair: 0-0 1-2 …")
@click.option(
    "--dictionary-count", type=click.IntRange(1), default=2, show_default=True, help="Links seen less are left out"
)
@click.option("-o", "--output", default="-", show_default=True, help="Compressed if its suffix says so")
@click.option("--force", is_flag=True, help="Replace an existing output")
@reports_errors
@takes(Counting)
def dictionary(given: Counting) -> None:
    """Count which words are linked in two aligned texts, or in a phrase table."""
    texts = [given.source, given.target, given.alignment]
    if any(texts) and not all(texts):
        raise click.UsageError("texts need --source, --target and --alignment; a phrase table none of them")
    from moses_rnn.cli.options import output_to
    from moses_rnn.moses.lexicon import lexicon_of

    counts, inputs = _of_texts(given) if all(texts) else _of_table(given.corpus)
    lexicon = lexicon_of(counts, given.dictionary_count)
    if not lexicon.entries:
        most = max((count for of_word in counts.values() for count in of_word.values()), default=0)
        raise InputError(
            f"{given.alignment or given.corpus}: expected a link that was seen {given.dictionary_count:,} times "
            f"(--dictionary-count), found {most:,} at most"
        )
    with output_to(given.output, given.force, inputs) as file:
        file.append(b"".join(lexicon.lines()))
        file.commit()
    pairs = sum(map(len, lexicon.entries.values()))
    print_err(f"{len(lexicon.entries):,} words with {pairs:,} translations, of {len(counts):,} words that are linked")


def _of_texts(given: Counting) -> Counted:
    from moses_rnn.cli.command import inputs_of

    check_inputs(f"{given.corpus}.{given.source}", f"{given.corpus}.{given.target}", given.alignment)
    from moses_rnn.moses.lexicon import count_links
    from moses_rnn.training.materials import Watch
    from moses_rnn.training.parallel import ParallelTexts

    texts = ParallelTexts.of_prefix(given.corpus, str(given.source), str(given.target), given.alignment)
    texts.check_lengths()
    counts = count_links(texts.aligned_pairs(Watch(lambda *_: None, StopRequest())))
    return counts, inputs_of(texts.source, texts.target, texts.links)


def _of_table(table: str) -> Counted:
    from moses_rnn.files.streams import find_input, read_lines
    from moses_rnn.moses.lexicon import count_links_of_table
    from moses_rnn.table.phrase_table import parse_table

    name = find_input(table)
    return count_links_of_table(parse_table(read_lines(name), name), name), (name,)
