"""A page of HTML that stands alone: nothing is fetched, nothing runs, and every word of a table is escaped.

The page's policy allows its one style sheet, by its hash, and pictures that are part of it; so nothing that slipped
through could load or run either. There is no JavaScript.
"""

from __future__ import annotations

import base64
import hashlib
import html
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import groupby

from moses_rnn.formats.grids import Cell, Grid, readable, unescaped

VOID = frozenset({"meta", "img"})  # of the elements used here, those without an end tag; SVG has none
PICTURE_TYPES = {"svg": "image/svg+xml", "png": "image/png"}
BAR_WIDTH, BAR_HEIGHT = 100, 8


class Markup(str):
    """HTML as it goes into a page; any other string is escaped before it does."""

    __slots__ = ()


class Figure(Markup):
    """A number that is already written as it is to be read."""

    __slots__ = ()


def markup(content: str | bytes) -> Markup:
    """Text as it is to be read; bytes are phrases, of which odd ones are shown escaped."""
    if isinstance(content, Markup):
        return content
    return Markup(html.escape(_readable(content)))


def _readable(content: str | bytes) -> str:
    return readable(content if isinstance(content, bytes) else content.encode("utf-8", "surrogateescape"))


def element(tag: str, *content: str | bytes, **attributes: str | int | float) -> Markup:
    """An element; what it holds is escaped unless it is `Markup`; attributes: ``class_`` is ``class``."""
    given = "".join(f' {name.strip("_").replace("_", "-")}="{markup(str(v))}"' for name, v in attributes.items())
    if tag in VOID:
        return Markup(f"<{tag}{given}>")
    return Markup(f"<{tag}{given}>{''.join(map(markup, content))}</{tag}>")


def phrase(text: str | bytes) -> Markup:
    """A phrase of a table, whichever way its script runs; Moses's escapes are shown as what they stand for."""
    return element("bdi", unescaped(_readable(text)))


def joined(parts: Sequence[str | bytes], between: str = " ") -> Markup:
    """Several one after the other."""
    return Markup(markup(between).join(map(markup, parts)))


@dataclass(frozen=True)
class Section:
    """A part of a report: how it is to be read stands under its title."""

    name: str  # within the page's links
    title: str
    how_to_read: str
    body: Sequence[Markup]


def table(grid: Grid) -> Markup:
    """A grid as a table in a box of its own, which scrolls where it is wider than the page.

    What rows belong to stands in a row above them, which leaves more width to the rest.
    """
    first = grid.group_columns
    numeric = [not any(_has_words(row[i]) for row in grid.rows) for i in range(len(grid.header))][first:]
    header = zip(grid.header[first:], numeric, strict=True)
    names = [element("th", name, scope="col", **_class(right)) for name, right in header]
    inner = element("table", element("thead", element("tr", *names)), *_bodies(grid, numeric))
    box = element("div", inner, class_="wide", tabindex=0, role="region", aria_label=grid.title or "table")
    return joined([element("p", grid.title, class_="caption")] * bool(grid.title) + [box], "")


def _has_words(cell: Cell) -> bool:
    return isinstance(cell, bytes | str) and not isinstance(cell, Figure)


def _class(right: bool) -> dict[str, str]:
    return {"class_": "figure"} if right else {}


def _bodies(grid: Grid, numeric: Sequence[bool]) -> Iterator[Markup]:
    """The rows, those that belong together as a part of the table."""
    first = grid.group_columns
    for group, members in groupby(grid.rows, key=lambda row: list(row[:first])):
        title = element("th", *map(shown, group), scope="rowgroup", colspan=len(numeric))
        over = [element("tr", title, class_="group")] * bool(first)
        cells = (zip(row[first:], numeric, strict=True) for row in members)
        rows = [element("tr", *(element("td", shown(cell), **_class(right)) for cell, right in row)) for row in cells]
        yield element("tbody", *over, *rows)


def shown(cell: Cell) -> Markup:
    """A cell for people: phrases as they are, figures short."""
    if isinstance(cell, Markup):
        return cell
    if isinstance(cell, bytes):
        return phrase(cell)
    if isinstance(cell, float):
        return markup(f"{cell:.3g}")
    return markup("–" if cell is None else f"{cell:,}" if isinstance(cell, int) else cell)


def facts(pairs: Sequence[tuple[str, str | bytes]]) -> Markup:
    """Names and what they stand for."""
    return element("dl", *(element("div", element("dt", name), element("dd", value)) for name, value in pairs))


def paragraph(*content: str | bytes) -> Markup:
    """A paragraph."""
    return element("p", *content)


def note(text: str | bytes) -> Markup:
    """A remark on what stands above or below it."""
    return element("p", text, class_="note")


def words_of(items: Sequence[str | bytes]) -> Markup:
    """Many words within a cell, which is wide enough for some and breaks between them."""
    return element("div", joined(items, ", "), class_="list")


def bullets(items: Sequence[str | bytes]) -> Markup:
    """A list."""
    return element("ul", *(element("li", item) for item in items))


def details(summary: str, *content: str | bytes) -> Markup:
    """What is unfolded by who wishes to."""
    return element("details", element("summary", summary), *content)


def bar(share: float) -> Markup:
    """A share from 0 to 1 as a bar, for a cell beside its figure."""
    width = round(BAR_WIDTH * max(0.0, min(1.0, share)), 1)
    filled = element("rect", width=width, height=BAR_HEIGHT, rx=1)
    box = f"0 0 {BAR_WIDTH} {BAR_HEIGHT}"
    return element("svg", filled, class_="bar", viewBox=box, width=BAR_WIDTH, height=BAR_HEIGHT, aria_hidden="true")


def columns(counts: Sequence[int], title: str) -> Markup:
    """How many there are in each of some equal parts of 0 to 1, as columns."""
    most = max(*counts, 1)
    heights = [round(60 * count / most, 1) for count in counts]
    bars = [
        element("rect", x=i * 24 + 1, y=72 - height, width=22, height=height) for i, height in enumerate(heights)
    ] + [
        element("text", f"{count:,}", x=i * 24 + 12, y=69 - height)
        for i, (count, height) in enumerate(zip(counts, heights, strict=True)) if count
    ] + [element("line", x1=0, y1=72.5, x2=240, y2=72.5)] + [
        element("text", text, x=x, y=84) for text, x in (("0", 4), ("0.5", 120), ("1", 236))
    ]  # fmt: skip
    drawn = element("svg", *bars, class_="columns", viewBox="0 0 240 88", role="img", aria_label=title)
    return element("figure", drawn, element("figcaption", title))


def profile(counts: Sequence[int], title: str) -> Markup:
    """How many there are in each of some equal parts, as small columns for a cell."""
    width, most = BAR_WIDTH / len(counts), max(*counts, 1)
    heights = [round(2 * BAR_HEIGHT * count / most, 1) for count in counts]
    bars = [
        element(
            "rect", x=round(i * width, 1), y=round(2 * BAR_HEIGHT - height, 1), width=round(width - 1, 1), height=height
        )
        for i, height in enumerate(heights)
    ]
    box = f"0 0 {BAR_WIDTH} {2 * BAR_HEIGHT}"
    size = {"width": BAR_WIDTH, "height": 2 * BAR_HEIGHT}
    return element("svg", *bars, class_="bar", viewBox=box, role="img", aria_label=title, **size)


def curve(points: Sequence[tuple[float, float]], beside: float | None, title: str) -> Markup:
    """A line through points from left to right, and a dashed one beside it; the axes' ends are written out.

    Heights are those of logarithms, so that a cost which falls by shares falls evenly; so they are above 0.
    """
    last = points[-1][0] or 1.0
    levels = [y for _, y in points] + ([] if beside is None else [beside])
    low, high = min(levels), max(levels)
    height = math.log(high / low) or 1.0

    def at(x: float, y: float) -> str:
        return f"{30 + 200 * x / last:.1f},{8 + 72 * math.log(high / y) / height:.1f}"

    lines = [element("polyline", points=" ".join(at(x, y) for x, y in points))]
    if beside is not None:
        lines.append(element("polyline", points=f"{at(0, beside)} {at(last, beside)}", class_="beside"))
    texts = [
        element("text", f"{high:.2f}", x=14, y=11), element("text", f"{low:.2f}", x=14, y=83),
        element("text", "0", x=30, y=94), element("text", f"{last:,.3g}", x=230, y=94),
    ]  # fmt: skip
    drawn = element("svg", *lines, *texts, class_="columns curve", viewBox="0 0 246 98", role="img", aria_label=title)
    return element("figure", drawn, element("figcaption", title))


def answer(kind: str, question: str, word: str, text: str) -> Markup:
    """A question, its answer in a word, and why, code between backquotes; `kind` is a class of the style sheet."""
    parts = [element("code", part) if i % 2 else part for i, part in enumerate(text.split("`"))]
    return element(
        "div", element("h2", question), element("p", element("strong", f"{word}. "), *parts), class_=f"answer {kind}"
    )


def picture(data: bytes, kind: str, caption: str, description: str) -> Markup:
    """A picture as part of the page, in a box that scrolls where it is wider."""
    address = f"data:{PICTURE_TYPES[kind]};base64,{base64.b64encode(data).decode()}"
    image = element("img", src=address, alt=description)
    box = element("div", image, class_="wide picture", tabindex=0, role="region", aria_label=description)
    return element("figure", box, element("figcaption", caption))


def page(title: str, head: Sequence[Markup], sections: Sequence[Section], foot: str) -> bytes:
    """The whole page."""
    style = files("moses_rnn.analysis.report").joinpath("report.css").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    links = [element("a", section.title, href=f"#{section.name}") for section in sections]
    headed = element("head", element("meta", charset="utf-8"),
                     element("meta", http_equiv="Content-Security-Policy", content=Markup(policy)),
                     element("meta", name="viewport", content="width=device-width, initial-scale=1"),
                     element("meta", name="color-scheme", content="light dark"),
                     element("meta", name="referrer", content="no-referrer"),
                     element("title", title), element("style", Markup(style)))  # fmt: skip
    body = element("body", element("header", element("h1", title), *head), element("nav", *links),
                   element("main", *map(_section, sections)), element("footer", element("p", foot)))  # fmt: skip
    return f'<!DOCTYPE html>\n<html lang="en">{headed}{body}</html>\n'.encode()


def _section(section: Section) -> Markup:
    how = element("p", section.how_to_read, class_="how")
    return element("section", element("h2", section.title), how, *section.body, id=section.name)
