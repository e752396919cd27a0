"""Lines as wide as the terminal: examples below a command's help, messages; commands broken where a shell lets them be.

click leaves paragraphs alone that begin with ``\\b``. In these, indented lines that call a program are commands; other
indented lines are rows of a table; the rest is prose.
"""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Iterator
from typing import TextIO

RAW = "\b"
COMMAND = re.compile(r" +(?:\S*(?:moses|MOSES)\S*|torchrun|zcat|make) ")
WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|[^\s"'])+""")
NARROW, WIDEST = 80, 100  # columns: of a terminal that does not say, and that are used of a wider one
DEEPER = 4  # blanks before what is continued


def fitted(epilog: str, width: int) -> str:
    """An epilog of which no line is wider, unless a single word is.

    Args:
        epilog: of a command, as click takes it.
        width: columns.
    """
    return "\n\n".join(_paragraph(paragraph, width) for paragraph in re.split(r"\n\s*\n", epilog))


def folded(text: str, stream: TextIO) -> str:
    """Lines for people: on a terminal none is wider than it, what is continued stands deeper; elsewhere as they are."""
    if not stream.isatty():
        return text
    return "\n".join(part for line in text.split("\n") for part in _shortened(line, _columns(stream), hanging="  "))


def _columns(stream: TextIO) -> int:
    try:
        return min(os.get_terminal_size(stream.fileno()).columns or NARROW, WIDEST)
    except OSError:
        return NARROW


def _paragraph(paragraph: str, width: int) -> str:
    first, _, rest = paragraph.partition("\n")
    if first.strip() != RAW:
        return paragraph  # which click fills
    lines = rest.replace("\\\n", " ").split("\n")
    return "\n".join([RAW, *(line for part in _parts(lines) for line in _shortened(part, width))])


def _parts(lines: list[str]) -> Iterator[str]:
    """Lines that stand for themselves, and prose put together to one each."""
    prose: list[str] = []
    for line in lines:
        is_prose = bool(line) and not line.startswith(" ")
        if prose and not (is_prose and not prose[-1].endswith(":")):
            yield " ".join(prose)
            prose = []
        if is_prose:
            prose.append(line)
        else:
            yield line
    if prose:
        yield " ".join(prose)


def _shortened(line: str, width: int, hanging: str = "") -> list[str]:
    if len(line) <= width:
        return [line]
    if COMMAND.match(line):
        return list(_continued(line, width))
    indent = line[: len(line) - len(line.lstrip())]
    hanging = indent + " " * DEEPER if indent else hanging
    return textwrap.wrap(line, width, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False)


def _continued(line: str, width: int) -> Iterator[str]:
    """A command on several lines, of which all but the last end with a backslash."""
    indent = line[: len(line) - len(line.lstrip())]
    begun = ""
    for unit in _units(WORD.findall(line)):
        longer = f"{begun} {unit}" if begun else indent + unit
        if begun and len(longer) > width - len(" \\"):
            yield f"{begun} \\"
            longer = indent + " " * DEEPER + unit
        begun = longer
    yield begun


def _units(words: list[str]) -> Iterator[str]:
    """What stays on a line: an option and its value, a sign of redirection and its file."""
    unit = ""
    for word in words:
        if unit and re.match(r"--?[a-z]|[<>]", unit) and " " not in unit and not re.match(r"[-<>|]", word):
            yield f"{unit} {word}"
            unit = ""
            continue
        if unit:
            yield unit
        unit = word
    if unit:
        yield unit
