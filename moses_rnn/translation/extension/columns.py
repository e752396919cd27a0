"""What stands in the columns of a new line: where each value comes from, and the values themselves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moses_rnn.errors import InputError
from moses_rnn.formats.phrase_table import DEFAULT_FLOOR, DIRECT_COLUMN
from moses_rnn.formats.signatures import first_added, recorded_names
from moses_rnn.translation.extension.survey import ColumnValues

NETWORK, INVERSE = "network", "inverse-network"
LEXICAL, INVERSE_LEXICAL = "lexical", "inverse-lexical"
LOWEST, MEAN = "lowest", "mean"
MEANINGS = {
    NETWORK: "p(target | source) of the network",
    INVERSE: "p(source | target) of the inverse network",
    LEXICAL: "lexical weight, p(target | source) by the table's word links",
    INVERSE_LEXICAL: "lexical weight, p(source | target) by the table's word links",
    LOWEST: "the lowest value above 0 that the table has there",
    MEAN: "the geometric mean of the table's values there",
}
Fill = str | float  # one of MEANINGS, or a value
# As phrase-extract writes them: p(s | t), lex(s | t), p(t | s), lex(t | s). Of a pair that was never extracted, and
# without an inverse network, nothing but the words says what p(s | t) is.
STANDARD = {0: INVERSE_LEXICAL, 1: INVERSE_LEXICAL, DIRECT_COLUMN: NETWORK, 3: LEXICAL}
WORD_PENALTY = "WordPenalty"  # of words outside the shortlist, of which a proposal has none
PROVENANCE = "Proposed"
PROVENANCE_MEANING = "1 for a pair that a network proposed, 0 for any other"
LEAST = math.exp(DEFAULT_FLOOR)  # that float32 holds with full precision


def parse_fill(text: str) -> tuple[int, Fill]:
    """``5=network`` or ``5=0.1``: a column, from 1, and what stands there.

    Raises:
        ValueError: it is neither; as a message.
    """
    number, equals, how = text.partition("=")
    if not equals or not number.isdecimal() or not int(number):
        raise ValueError(f"expected a column, counted from 1, and what stands there, as 5=network, found {text!r}")
    if how in MEANINGS:
        return int(number), how
    try:
        value = float(how)
    except ValueError:
        value = math.nan
    if not LEAST <= value < math.inf:
        raise ValueError(f"expected {', '.join(MEANINGS)} or a number above 0 for column {number}, found {how!r}")
    return int(number), value


@dataclass(frozen=True)
class Names:
    """What the columns are called that networks add to a table, and the signature that tells them, if there is one.

    `inverse` is None without an inverse network.
    """

    network: str
    inverse: str | None = None
    signature: Mapping[str, Any] | None = None

    def columns(self, name: str, columns: int) -> list[int]:
        """The columns of that name, from 0."""
        recorded = recorded_names(self.signature or {})
        return [column for column, other in recorded.items() if other == name and column < columns]

    def standard(self, columns: int) -> int:
        """How many columns the table had before the first was added."""
        return first_added(self.signature or {}, columns)


def choose_fills(table: str, values: Sequence[ColumnValues], names: Names, given: Mapping[int, Fill]) -> list[Fill]:
    """What stands in each column.

    Args:
        table: its name, for messages.
        values: of its columns.
        names: of those that networks have added.
        given: by the user, by column from 1.

    Raises:
        InputError: a column is given that the table does not have, or an inverse network is needed.
    """
    columns = len(values)
    fills: list[Fill] = [column.least if column.is_constant else LOWEST for column in values]
    if names.standard(columns) >= len(STANDARD):
        for i, fill in STANDARD.items():
            fills[i] = INVERSE if i == 0 and names.inverse else fill
    added: dict[str, Fill] = {
        names.network: NETWORK,
        WORD_PENALTY: 1.0,
        PROVENANCE: math.e,  # of an earlier extension
        **({names.inverse: INVERSE} if names.inverse else {}),
    }
    for name, added_fill in added.items():
        for place in names.columns(name, columns):
            fills[place] = added_fill
    for number, given_fill in given.items():
        if number > columns:
            raise InputError(f"{table}: expected a column of its {columns} for --column, found {number}")
        fills[number - 1] = given_fill
    if INVERSE in fills and not names.inverse:
        raise InputError(f"{table}: expected an --inverse-model, whose score a --column is to have, found none")
    return fills


@dataclass(frozen=True)
class Estimates:
    """Of a new pair: logarithms of the networks' probabilities, and the lexical weights of both directions.

    `inverse` is None without an inverse network; `lexical` is p(source | target), then p(target | source).
    """

    network: float
    inverse: float | None
    lexical: tuple[float, float]


class ColumnWriter:
    """Writes the scores of new lines.

    Args:
        fills: of the columns, see `choose_fills`.
        values: what the table has in each.
    """

    def __init__(self, fills: Sequence[Fill], values: Sequence[ColumnValues], lines: int) -> None:
        self._fills = [
            _settled(fill, column, lines) if isinstance(fill, str) else fill
            for fill, column in zip(fills, values, strict=True)
        ]

    def __call__(self, estimates: Estimates) -> bytes:
        """The third field of a line."""
        of = {
            NETWORK: _probability(estimates.network),
            INVERSE: _probability(estimates.inverse or 0.0),
            INVERSE_LEXICAL: max(estimates.lexical[0], LEAST),
            LEXICAL: max(estimates.lexical[1], LEAST),
        }
        return b" ".join(b"%.9g" % (of[fill] if isinstance(fill, str) else fill) for fill in self._fills)


def _settled(fill: str, column: ColumnValues, lines: int) -> Fill:
    """The number that a column has on every new line, where it has one."""
    if fill == LOWEST:
        return column.least
    return math.exp(column.logs / lines) if fill == MEAN else fill


def _probability(log_prob: float) -> float:
    return math.exp(min(max(log_prob, DEFAULT_FLOOR), 0.0))
