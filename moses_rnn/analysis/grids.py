"""Tables of figures and phrases, formatted as text, Markdown, CSV, TSV or JSON."""

from __future__ import annotations

import csv
import html
import io
import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

COLUMNS = 80  # of a terminal
Cell = bytes | str | float | int | None  # bytes: a phrase as in the table; None: there is no such figure

# What could be markup within a cell; CommonMark allows a backslash before any punctuation. Without it, Moses's &apos;
# would be shown as an apostrophe.
MARKDOWN_SPECIAL = re.compile(r"[\\`*_\[\]<>|~&$#]")
# As escape-special-chars.perl writes what means something to Moses
MOSES_ESCAPE = re.compile("&(?:amp|#124|lt|gt|apos|quot|#91|#93);")
TSV_SPECIAL = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})


@dataclass(frozen=True)
class Grid:
    """Rows of cells under a header.

    The first `group_columns` cells say what a row belongs to. In text and Markdown, they appear only in the first of
    several rows that share them. There, floats have so many `decimals` or, if None, three digits.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    group_columns: int = 0
    decimals: int | None = None


def readable(phrase: bytes | str) -> str:
    """Make a phrase or name printable: escape invalid bytes (surrogates in a name) and terminal control characters."""
    phrase = phrase.encode("utf-8", "surrogateescape") if isinstance(phrase, str) else phrase
    text = phrase.decode("utf-8", "backslashreplace")
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def unescaped(text: str) -> str:
    """Replace Moses's escapes in a readable phrase with the characters that they stand for."""
    return MOSES_ESCAPE.sub(lambda escape: html.unescape(escape.group()), text)


def as_text(grid: Grid) -> str:
    """Format in columns: words are aligned to the left, figures to the right.

    On a terminal, a wide table is split into parts that fit. Each part repeats the first `group_columns`.
    """
    rows = list(_shown(grid))
    widths = [max(len(row[i]) for row in rows) for i in range(len(grid.header))]
    left = [any(isinstance(row[i], bytes | str) for row in grid.rows) for i in range(len(grid.header))]
    parts = []
    for columns in _parts(widths, max(grid.group_columns, 1)):
        cells = [[row[i].ljust(widths[i]) if left[i] else row[i].rjust(widths[i]) for i in columns] for row in rows]
        parts.append("\n".join(f"  {'  '.join(row)}".rstrip() for row in cells))
    text = "\n\n".join(parts)
    return f"{grid.title}\n{text}" if grid.title else text


def _parts(widths: Sequence[int], repeated: int) -> Iterator[list[int]]:
    """Split the columns into parts that fit on a terminal; every part repeats the first ones."""
    whole = COLUMNS if sys.stdout.isatty() else math.inf
    first, room = [*range(min(repeated, len(widths)))], whole - sum(2 + width for width in widths[:repeated])
    part: list[int] = []
    for column in range(len(first), len(widths)):
        if part and sum(2 + widths[i] for i in (*part, column)) > room:
            yield first + part
            part = []
        part.append(column)
    yield first + part


def as_markdown(grid: Grid) -> str:
    """Format as a GitHub Markdown table with its title."""
    header, *rows = (f"| {' | '.join(_in_markdown(cell) for cell in row)} |" for row in _shown(grid))
    title = [f"**{_in_markdown(grid.title)}**", ""] if grid.title else []
    return "\n".join([*title, header, "|---" * len(grid.header) + "|", *rows])


def _in_markdown(text: str) -> str:
    return MARKDOWN_SPECIAL.sub(lambda special: "\\" + special.group(), text)


def as_csv(grid: Grid) -> str:
    """Format for programs: figures with nine digits, phrases unchanged (invalid bytes as surrogates)."""
    lines = []
    for row in (grid.header, *grid.rows):
        out = io.StringIO()
        csv.writer(out, lineterminator="\r\n").writerow(map(_exact, row))  # which quotes \r within cells too
        lines.append(out.getvalue().removesuffix("\r\n"))
    return "\n".join(lines)


def as_tsv(grid: Grid) -> str:
    """Format like CSV, but with tabs. Nothing is quoted; tabs, line ends and backslashes within a cell are escaped."""
    rows = ((_exact(cell).translate(TSV_SPECIAL) for cell in row) for row in (grid.header, *grid.rows))
    return "\n".join(map("\t".join, rows))


def as_json_lines(grid: Grid) -> str:
    """Format each row as an object with the header's names. Invalid bytes are escaped; infinity and NaN are null."""
    rows = (dict(zip(grid.header, map(_as_json, row), strict=True)) for row in grid.rows)
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)


def _as_json(cell: Cell) -> Cell:
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "backslashreplace")
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell


PICTURES = ("svg", "png")  # kinds of files that `plots` draws
LAYOUTS: dict[str, Callable[[Grid], str]] = {
    "text": as_text,
    "markdown": as_markdown,
    "csv": as_csv,
    "tsv": as_tsv,
    "jsonl": as_json_lines,
}


def _shown(grid: Grid) -> Iterator[list[str]]:
    """Format header and rows for people."""
    yield [*map(readable, grid.header)]
    before: Sequence[Cell] = ()
    for row in grid.rows:
        shown = [_for_people(cell, grid.decimals) for cell in row]
        if before and tuple(row[: grid.group_columns]) == tuple(before[: grid.group_columns]):
            shown[: grid.group_columns] = [""] * grid.group_columns
        yield shown
        before = row


def _for_people(cell: Cell, decimals: int | None) -> str:
    if isinstance(cell, bytes | str):
        return readable(cell)
    if isinstance(cell, float):
        return f"{cell:.3g}" if decimals is None else f"{cell:.{decimals}f}"
    return "–" if cell is None else f"{cell:,}"


def _exact(cell: Cell) -> str:
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "surrogateescape")
    if isinstance(cell, float):
        return f"{cell:.9g}"
    return "" if cell is None else str(cell)
