"""What the values of a plan of trials may be; see `plans`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from moses_rnn.errors import shown_value

# What decides the texts, the table and the language model; what decides a tuning; what decides nothing
OF_TABLE = (
    *("SRC", "TRG", "TRAIN", "DEV", "TEST", "TOKENISED", "LOWERCASE", "MAX_WORDS", "MAX_PHRASE", "REORDERING"),
    *("ORDER", "LM_FLAGS", "ALIGNER", "MGIZA_BIN", "PHRASE_TABLE", "BASELINE_INI"),
)
OF_TUNING = ("NBEST", "DECODER_FLAGS", "MERT_FLAGS")
OF_PLACE = ("MOSES_ROOT", "THREADS")
INTEGERS = {"MAX_WORDS", "MAX_PHRASE", "ORDER", "NBEST", "THREADS"}
LISTS = {"TEST", "LM_FLAGS", "DECODER_FLAGS", "MERT_FLAGS"}
COMBINATIONS = ("mean-log", "columns")
TUNERS = ("mert", "mira")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]*")
SIGNS = re.compile(
    r"""['"`$;&|<>(){}\[\]*?!~%\\#\x00-\x1f]"""
)  # that make or a shell acts upon; pipeline.mk has them too
Table = Mapping[str, Any]


class Unexpected(ValueError):
    """A value that a plan cannot have, with what was expected."""

    def __init__(self, expected: str, found: str) -> None:
        super().__init__(expected, found)
        self.expected, self.found = expected, found


def check_text(value: object) -> str:
    """A text that make and a shell take as one word."""
    if not isinstance(value, str) or SIGNS.search(value) or len(value.split()) != 1:
        raise Unexpected(
            "a text without blanks, quotes or other characters that make or a shell treats specially",
            shown_value(value),
        )
    return value


def check_name(value: object) -> str:
    """A part of file names."""
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise Unexpected("a name of letters, digits, '.', '+' and '-'", shown_value(value))
    return value


def check_words(value: object) -> str:
    """Words, parted by blanks or in a list."""
    words = value if isinstance(value, list) else [value]
    if any(isinstance(word, bool) or not isinstance(word, str | int) or SIGNS.search(str(word)) for word in words):
        expected = "integers, or texts without quotes or other characters that make or a shell treats specially"
        raise Unexpected(expected, shown_value(value))
    return " ".join(map(str, words))


def check_integer(value: object) -> str:
    """An integer, which may be written as a text."""
    if isinstance(value, bool) or not re.fullmatch("[0-9]+", str(value)):
        raise Unexpected("an integer", shown_value(value))
    return str(value)


def check_seeds(value: object) -> tuple[int, ...]:
    """Numbers that a generator begins with."""
    seeds = value if isinstance(value, list) else []
    good = all(isinstance(seed, int) and not isinstance(seed, bool) and 0 <= seed < 2**31 for seed in seeds)
    if not seeds or not good or len(set(seeds)) != len(seeds):
        raise Unexpected("a list of different integers from 0 to below 2^31", shown_value(value))
    return tuple(seeds)


def check_table(value: object) -> Table:
    """A table."""
    if not isinstance(value, dict):
        raise Unexpected("a table", shown_value(value))
    return value


def check_tables(value: object) -> list[Table]:
    """Several tables."""
    if not isinstance(value, list):
        raise Unexpected("tables, each [[trial]]", shown_value(value))
    return [check_table(table) for table in value]


def check_flag(value: object) -> bool:
    """A truth value."""
    if not isinstance(value, bool):
        raise Unexpected("true or false", shown_value(value))
    return value


def is_one_of(allowed: tuple[str, ...]) -> Callable[[object], str]:
    """The check of a choice."""

    def check(value: object) -> str:
        if value not in allowed:
            raise Unexpected(f"one of {', '.join(allowed)}", shown_value(value))
        return str(value)

    return check


VARIABLES: Mapping[str, Callable[[object], str]] = {
    name: check_integer if name in INTEGERS else check_words if name in LISTS else check_text
    for name in (*OF_TABLE, *OF_TUNING, *OF_PLACE)
}
SETTINGS: Mapping[str, Callable[[Any], Any]] = {
    "train": check_table,
    "score": check_table,
    "networks": check_seeds,
    "combine": is_one_of(COMBINATIONS),
    "inverse": check_flag,
    "tuner": is_one_of(TUNERS),
    "seeds": check_seeds,
}
