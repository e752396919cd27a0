"""N-best lists that commands read."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moses_rnn.files.shards import Shard
    from moses_rnn.moses.nbest import NBestLine


def parsed_list(nbest: str, shard: Shard | None = None) -> tuple[str, Iterator[NBestLine]]:
    """The list's name and lines, or those of a shard of it."""
    from moses_rnn.files.shards import count_lines, read_part
    from moses_rnn.files.streams import find_input, read_lines
    from moses_rnn.moses.nbest import parse_nbest

    name = find_input(nbest)
    if shard is None:
        return name, parse_nbest(read_lines(name), name)
    part = shard.lines_of(count_lines(name))
    lines = itertools.chain.from_iterable(map(io.BytesIO, read_part(name, part)))
    return name, parse_nbest(lines, name, part.start)
