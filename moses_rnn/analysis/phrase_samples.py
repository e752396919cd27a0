"""Draw a sample of a table's phrases in one pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from moses_rnn.analysis.scored_table import sample_key
from moses_rnn.errors import InputError
from moses_rnn.files.streams import Advanced, Meter, find_input, read_blocks, show_nothing
from moses_rnn.models.model import Model
from moses_rnn.table.phrase_table import read_first_line
from moses_rnn.table.phrases import words
from moses_rnn.table.table_blocks import TableLines, parse_blocks
from moses_rnn.translation.proposals import Converter


def draw_phrases(items: Iterable[tuple[bytes, ...]], count: int) -> list[tuple[bytes, ...]]:
    """Draw `count` distinct phrases, or tuples of phrases, from a stream; each is equally likely.

    The sample has those with the smallest keys. Order and repetition do not matter, and a smaller sample is the
    beginning of a larger one.
    """
    kept: dict[int, tuple[bytes, ...]] = {}
    for item in items:
        kept[sample_key(*item)] = item
        if len(kept) > 2 * count:
            kept = dict(sorted(kept.items())[:count])
    return [item for _, item in sorted(kept.items())[:count]]


def read_for_network(table: str, reading: Converter, advanced: Advanced = show_nothing) -> Iterator[TableLines]:
    """Yield the blocks of a table. Raise an error if the network learned from phrases of another form."""
    name, form, meter = find_input(table), reading.form, Meter()
    if Path(name).is_file():  # a pipe cannot be read twice
        _, form = read_first_line(name, form if form.is_factored else None)
    reading.check_form(name, form)
    for block in parse_blocks(read_blocks(name, meter=meter), name, form=form):
        yield block
        advanced(meter.lines_read, meter.share)


def sample_table(
    model: Model, table: str, count: int, *, whole: bool = False, min_words: int = 1, advanced: Advanced = show_nothing
) -> list[tuple[bytes, ...]]:
    """Draw distinct phrases that a network reads, of at least `min_words` words. If `whole`, draw pairs."""
    reading = Converter(model)

    def items() -> Iterator[tuple[bytes, ...]]:
        for block in read_for_network(table, reading, advanced):
            read, written = block.pairs().sides(inverse=reading.inverse)
            some: Iterable[tuple[bytes, ...]] = zip(read, written, strict=True) if whole else zip(dict.fromkeys(read))
            yield from (item for item in some if len(words(item[0])) >= min_words and all(map(words, item)))

    drawn = draw_phrases(items(), count)
    if not drawn:
        raise InputError(f"{table}: expected phrases of {min_words} or more words, found none")
    return drawn
