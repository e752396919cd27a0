"""N-best lists that commands read."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moses_rnn.files.shards import Shard
    from moses_rnn.formats.nbest import NBestLine


def parsed_list(nbest: str, shard: Shard | None = None) -> tuple[str, Iterator[NBestLine]]:
    """The list's name and lines, or those of a shard of it, which has whole sentences."""
    from moses_rnn.files.shards import Part
    from moses_rnn.files.streams import existing_input, read_lines
    from moses_rnn.formats.nbest import parse_nbest
    from moses_rnn.formats.phrase_table import source_field

    name = existing_input(nbest)
    if shard is None:
        return name, parse_nbest(read_lines(name), name)
    part = Part(name, shard, source_field)  # the sentence's number stands there
    lines = itertools.chain.from_iterable(map(io.BytesIO, part.blocks()))
    return name, parse_nbest(lines, f"{name} (shard {shard})")
