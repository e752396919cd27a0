"""The examples below a command's help, as wide as the terminal: commands broken where a shell lets them be.

click leaves paragraphs alone that begin with ``\\b``. In these, indented lines that call a program are commands; other
indented lines are rows of a table; the rest is prose.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

RAW = "\b"
COMMAND = re.compile(r" +(?:\S*moses\S*|torchrun|zcat|make) ")
WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|[^\s"'])+""")
DEEPER = 4  # blanks before what is continued


def fitted(epilog: str, width: int) -> str:
    """An epilog of which no line is wider, unless a single word is.

    Args:
        epilog: of a command, as click takes it.
        width: columns.
    """
    return "\n\n".join(_paragraph(paragraph, width) for paragraph in re.split(r"\n\s*\n", epilog))


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


def _shortened(line: str, width: int) -> list[str]:
    if len(line) <= width:
        return [line]
    if COMMAND.match(line):
        return list(_continued(line, width))
    indent = line[: len(line) - len(line.lstrip())]
    hanging = indent + " " * DEEPER if indent else ""
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
