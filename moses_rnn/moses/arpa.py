"""N-gram models in ARPA format, as KenLM reads it: ``log10 p<TAB>w_1 … w_n[<TAB>log10 backoff]`` in sections.

A section begins with ``\\1-grams:`` and so on. Comments (``#``) may stand before ``\\data\\``, blank lines anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile

from moses_rnn.errors import FormatError, InputError, number_of, shown
from moses_rnn.files.streams import read_lines
from moses_rnn.table.phrase_table import NUMBER
from moses_rnn.table.phrases import words

SECTION = re.compile(rb"\\([0-9]{1,3})-grams:")
LOG_PROB = re.compile(rb"-inf|" + NUMBER.pattern)
UNKNOWN = b"<unk>"
UNKNOWN_AS_WRITTEN = frozenset([UNKNOWN, b"<UNK>"])  # KenLM treats both as equal
BINARY = b"mmap lm"  # beginning of KenLM's binary files
NO_BINARY = "This command cannot read KenLM's binary models: give the original ARPA file."


def parse_arpa(lines: Iterable[bytes], name: str) -> Iterator[tuple[bytes, ...]]:
    """Yield the words of each n-gram of the model `name`, shorter n-grams first; ``<UNK>`` becomes ``<unk>``."""
    order, begun = 0, False  # 0: before the first section
    for number, line in enumerate(lines, start=1):
        text = line.rstrip(b"\r\n")
        if not text.strip() or (text.startswith(b"#") and not begun):
            continue
        if section := SECTION.fullmatch(text):
            order = int(section[1])
        elif text == b"\\end\\":
            return
        elif order:
            yield _n_gram(text, order, name, number)
        elif not begun:
            if text != b"\\data\\":
                found = (
                    "a binary model" if text.startswith(BINARY) else f"another line, of {number_of(len(text), 'byte')}"
                )
                raise FormatError(name, number, "an ARPA file, which begins with \\data\\", found, NO_BINARY)
            begun = True
    raise FormatError(name, None, "\\end\\ as the last line", "none: the file was cut short")


def words_of_arpa(path: str) -> set[bytes]:
    """Return the words that a model knows, ``<s>`` and ``</s>`` among them."""
    return {word for (word,) in takewhile(lambda n_gram: len(n_gram) == 1, parse_arpa(read_lines(path), path))}


def check_same_words(known: Mapping[str, set[bytes]]) -> None:
    """Raise InputError if models know different words, given by path."""
    first = next(iter(known), "")
    for path, words_of_model in known.items():
        if different := len(words_of_model ^ known[first]):
            raise InputError(f"{path}: expected the words of {first}, found {different:,} different ones")


def _n_gram(text: bytes, order: int, name: str, number: int) -> tuple[bytes, ...]:
    fields = words(text)
    is_whole = order + 1 <= len(fields) <= order + 2 and LOG_PROB.fullmatch(fields[0])
    if not is_whole or b"\r" in text:  # versions of KenLM differ in whether a carriage return parts words
        raise FormatError(
            name, number, f"a log-probability, {number_of(order, 'word')} and perhaps a backoff", shown(text)
        )
    return tuple(UNKNOWN if word in UNKNOWN_AS_WRITTEN else word for word in fields[1 : order + 1])
