"""A hook of mkdocs: README.md becomes the first page, and links to files outside docs/ become their text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.structure.files import Files

ROOT = Path(__file__).parent.parent
TO_PAGE = re.compile(r"\]\(docs/([\w./-]+\.(?:md|png))")
TO_FILE = re.compile(r"\[([^\]]*)\]\((?!https?:)(?:\.\./|(?![\w-]+\.(?:md|png)|#))[\w./-]+(?:#[\w-]+)?\)")


def first_page(readme: str) -> str:
    """README.md with links as they are among the pages."""
    return TO_PAGE.sub(r"](\1", readme)


def without_files(markdown: str) -> str:
    """A page whose links to what is no page are their text."""
    return TO_FILE.sub(r"\1", markdown)


def on_files(files: Files, config: Any) -> Files:
    """Add the first page."""
    from mkdocs.structure.files import File  # noqa: PLC0415, of the extra ``docs``: the rest needs nothing

    files.append(File.generated(config, "index.md", content=first_page((ROOT / "README.md").read_text("utf-8"))))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Take out links to files that the site has not."""
    return without_files(markdown)
