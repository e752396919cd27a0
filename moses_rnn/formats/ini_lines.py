"""The lines of a moses.ini, as moses/Parameter.cpp reads them: comments, sections, words, settings."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from moses_rnn.formats.phrase_table import NUMBER

WEIGHT = re.compile(NUMBER.pattern.decode())


def sections_of(lines: list[str]) -> list[str | None]:
    """For each line the section it is content of; None for headers, comments and empty lines."""
    current: str | None = None
    belongs: list[str | None] = []
    for line in lines:
        code = code_of(line)
        is_header = code.startswith("[")
        if is_header and "]" in code:  # Moses ignores what follows the bracket
            current = code[1 : code.index("]")]
        belongs.append(current if code and not is_header else None)
    return belongs


def code_of(line: str) -> str:
    """A line without its comment and surrounding white space."""
    return line.partition("#")[0].strip(" \t\r\n")


def tokens(line: str) -> list[str]:
    """What Moses takes for words of a line: U+00A0, U+3000 or a form feed do not part them."""
    return [word for word in re.split("[ \t]", line) if word]


def is_readable_path(path: str) -> bool:
    """Whether Moses can read a path in an ini, where blanks part words and '#' begins a comment."""
    return re.search(r"[ \t\r\n#]", path) is None


def weight_of(word: str) -> float:
    """A number as Moses reads it; ``nan`` for anything else."""
    return float(word) if WEIGHT.fullmatch(word) else math.nan


def encode_lines(lines: list[str]) -> bytes:
    """The lines as a file, every byte that was no UTF-8 as it came."""
    return "\n".join(lines).encode("utf-8", "surrogateescape")


def with_options(line: str, edits: dict[str, Callable[[str], str]]) -> str:
    """A feature line with the values of some of its settings replaced, where it has them."""
    code, hash_sign, comment = line.partition("#")
    kept = code.rstrip(" \t\r")  # a CR inside a value is part of it
    edited = re.sub(r"(?<=[ \t])([^ \t=]+)=([^ \t]*)", lambda setting: _edited(setting, edits), kept)
    return edited + code[len(kept) :] + hash_sign + comment


def with_type(line: str, old: str, new: str, added: str) -> str:
    """A feature line for another type, with a further setting behind it."""
    code, hash_sign, comment = line.partition("#")
    kept = code.rstrip(" \t\r")
    return kept.replace(old, new, 1) + added + code[len(kept) :] + hash_sign + comment


def _edited(setting: re.Match[str], edits: dict[str, Callable[[str], str]]) -> str:
    key, value = setting.groups()
    return f"{key}={edits[key](value)}" if key in edits else setting.group()


def with_weights(line: str, weights: list[float]) -> str:
    """A weight line with further numbers behind its own."""
    if not weights:
        return line
    code, hash_sign, comment = line.partition("#")
    kept = code.rstrip(" \t\r")
    return f"{kept} {format_weights(weights)}{code[len(kept) :]}{hash_sign}{comment}"


def format_weights(weights: list[float]) -> str:
    """Numbers as they stand in a weight line."""
    return " ".join(f"{weight:.6g}" for weight in weights)
