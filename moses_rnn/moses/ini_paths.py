"""The relative paths of a moses.ini: which words are paths, and which folder they are seen from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

LISTS = "^(lex-[ef]2[ef]|references)$"  # keys whose paths are parted by commas
# How Moses's features call what they read
KEYS = re.compile(
    "(^|[-_])(path|file|dir|list|vocab|vocabulary)([-_]|$)|File$|^sparse-(words|clusters|weights)|^(base|extra)$|"
    f"{LISTS}|^unknown-lhs$|^spe-"
)
SETTINGS = frozenset({"feature", "feature-add", "feature-overwrite", "alternate-weight-setting"})  # lines of key=value
# Sections of what Moses reads, and which word of their lines is the path
READ = {"weight-file": 0, "input-file": 0, "unknown-lhs": 0, "spe-src": 0, "spe-trg": 0, "spe-aln": 0} | {
    "slmodel-file": 0,
    "global-lexical-file": 1,
    "lmodel-file": 3,
    "distortion-file": 3,
    "generation-file": 3,
    "ttable-file": 4,
}
WRITTEN = re.compile(
    "^(n-best-list|lattice-samples|alignment-output-file|server-log|output-.*|.*translation-.*details)$"
)


class RelativePath(NamedTuple):
    """Where it begins, and the folder that it is seen from; None: it looks like a path, but may be none."""

    line: int  # from 0
    column: int
    text: str
    folder: Path | None


def relative_paths(
    lines: Sequence[str], sections: Iterable[tuple[int, str]], folders: Sequence[Path]
) -> Iterator[RelativePath]:
    """All relative paths on lines of these indices and sections.

    What is seen from several folders is taken from the first of them.
    """
    for index, section in sections:
        for column, key, text in _texts(section, lines[index], folders):
            folder = _folder_of(key, text, folders)
            may_be_one = key != "name" and ("/" in text or (not text.isdigit() and _first(folders, text) is not None))
            is_relative = text and not text.startswith("/") and "://" not in text
            if is_relative and (folder or may_be_one):
                yield RelativePath(index, column, text, folder)


def _texts(section: str, line: str, folders: Sequence[Path]) -> Iterator[tuple[int, str, str]]:
    """What may be a path in a line: where it begins, its key, and the path."""
    code = line.partition("#")[0].rstrip(" \t\r")  # a CR inside a word is part of it
    for number, word in enumerate(re.finditer("[^ \t]+", code)):
        key, equals, value = word.group().partition("=")
        if not (section in SETTINGS and equals):
            if not WRITTEN.search(section) and number < READ.get(section, len(code)):
                continue
            key, value = section if number == READ.get(section) else "", word.group()
        column = word.end() - len(value)
        for text in _parts(key, value, folders):
            yield column, key, text
            column += len(text) + 1


def _parts(key: str, value: str, folders: Sequence[Path]) -> list[str]:
    """The paths of a value: some features take several, others a path with a comma."""
    parts = value.split(",")
    return parts if re.search(LISTS, key) or all(_first(folders, part) for part in parts) else [value]


def _folder_of(key: str, text: str, folders: Sequence[Path]) -> Path | None:
    if KEYS.search(key):
        return next((folder for folder in folders if begins_a_name(folder / text)), folders[0])
    return _first(folders, text) if "/" in text or "." in text else None


def _first(folders: Sequence[Path], text: str) -> Path | None:
    """The first folder in which there is something of that name."""
    return next((folder for folder in folders if is_there(folder / text)), None)


def begins_a_name(place: Path) -> bool:
    """Whether a path leads somewhere, or a longer one does: Moses puts .gz and the like behind some."""
    try:
        return place.exists() or any(other.name.startswith(place.name) for other in place.parent.iterdir())
    except (OSError, ValueError):
        return False


def is_there(place: Path) -> bool:
    """Whether an ini's path leads somewhere; one that the system cannot even look up does not."""
    try:
        return place.exists()
    except OSError:
        return False
