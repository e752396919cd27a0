"""What stands in the columns of a new line."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from moses_rnn.formats.phrase_table import DEFAULT_FLOOR, DIRECT_COLUMN
from moses_rnn.translation.extension.survey import ColumnValues

NETWORK, INVERSE = "network", "inverse-network"  # p(target | source) of the network, p(source | target) of the other
LEXICAL, INVERSE_LEXICAL = "lexical", "inverse-lexical"  # weights by the table's word links
LOWEST = "lowest"  # value above 0 that the table has there
Fill = str | float  # one of these, or a value
# As phrase-extract writes them: p(s | t), lex(s | t), p(t | s), lex(t | s). Of a pair that was never extracted, and
# without an inverse network, nothing but the words says what p(s | t) is.
STANDARD = {0: INVERSE_LEXICAL, 1: INVERSE_LEXICAL, DIRECT_COLUMN: NETWORK, 3: LEXICAL}
WORD_PENALTY = "WordPenalty"  # of words outside the shortlist, of which a proposal has none
PROVENANCE = "Proposed"
PROVENANCE_MEANING = "1 for a pair that a network proposed, 0 for any other"
LEAST = math.exp(DEFAULT_FLOOR)  # that float32 holds with full precision


def choose_fills(values: Sequence[ColumnValues], added: Mapping[int, str], networks: Mapping[str, Fill]) -> list[Fill]:
    """What stands in each column.

    Args:
        values: of the table's columns.
        added: the names of those that were added to the table, by column, from 0.
        networks: what stands in columns that have the names of the networks' scores.
    """
    fills: list[Fill] = [column.least if column.is_constant else LOWEST for column in values]
    if min([*added, len(values)]) >= len(STANDARD):
        for i, fill in STANDARD.items():
            fills[i] = INVERSE if i == 0 and INVERSE in networks.values() else fill
    known = {WORD_PENALTY: 1.0, PROVENANCE: math.e, **networks}  # exp(1): of an earlier extension
    for column, name in added.items():
        if name in known:
            fills[column] = known[name]
    return fills


def write_scores(fills: Sequence[Fill], network: float, inverse: float | None, lexical: tuple[float, float]) -> bytes:
    """The third field of a new line.

    Args:
        fills: of the columns, none of them LOWEST.
        network: log p(target | source).
        inverse: log p(source | target), if there is a network that says so.
        lexical: weights p(source | target) and p(target | source).
    """
    of = {
        NETWORK: _probability(network),
        INVERSE: _probability(inverse or 0.0),
        INVERSE_LEXICAL: max(lexical[0], LEAST),
        LEXICAL: max(lexical[1], LEAST),
    }
    return b" ".join(b"%.9g" % (of[fill] if isinstance(fill, str) else fill) for fill in fills)


def _probability(log_prob: float) -> float:
    return math.exp(min(max(log_prob, DEFAULT_FLOOR), 0.0))
