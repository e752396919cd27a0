"""The relative paths of a moses.ini: which words are paths, and which folder they are seen from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

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


@dataclass(frozen=True)
class RelativePath:
    """Where it begins, and the folder that it is seen from; None: it looks like a path, but may be none."""

    line: int  # from 0
    column: int
    text: str
    folder: Path | None

    @property
    def leads_somewhere(self) -> bool:
        """Whether the folder has it, or a longer name: Moses puts .gz and the like behind some paths."""
        return self.folder is not None and _begins_a_name(self.folder / self.text)


def relative_paths(lines: list[str], sections: list[str | None], folders: Sequence[Path]) -> Iterator[RelativePath]:
    """All relative paths of an ini; what is seen from several folders is taken from the first of them."""
    for index, section in enumerate(sections):
        for start, key, value in _values(section, lines[index]):
            column = start
            for text in _parts(key, value, folders):
                folder = _folder_of(key, text, folders)
                is_relative = text and not text.startswith("/") and "://" not in text
                if is_relative and (folder or _may_be_a_path(key, text, folders)):
                    yield RelativePath(index, column, text, folder)
                column += len(text) + 1


def _values(section: str | None, line: str) -> Iterator[tuple[int, str, str]]:
    """Words of a line that may be paths: where they begin, their key, and the path."""
    if section is None:
        return
    code = line.partition("#")[0].rstrip(" \t\r")  # a CR inside a word is part of it
    for number, word in enumerate(re.finditer("[^ \t]+", code)):
        key, equals, value = word.group().partition("=")
        if section in SETTINGS and equals:
            yield word.end() - len(value), key, value
        elif WRITTEN.search(section) or number >= READ.get(section, len(code)):
            yield word.start(), section if number == READ.get(section) else "", word.group()


def _parts(key: str, value: str, folders: Sequence[Path]) -> list[str]:
    """The paths of a value: some features take several, others a path with a comma."""
    parts = value.split(",")
    return parts if re.search(LISTS, key) or all(_first(folders, part) for part in parts) else [value]


def _folder_of(key: str, text: str, folders: Sequence[Path]) -> Path | None:
    if KEYS.search(key):
        return next((folder for folder in folders if _begins_a_name(folder / text)), folders[0])
    return _first(folders, text) if "/" in text or "." in text else None


def _may_be_a_path(key: str, text: str, folders: Sequence[Path]) -> bool:
    return key != "name" and ("/" in text or (not text.isdigit() and _first(folders, text) is not None))


def _first(folders: Sequence[Path], text: str) -> Path | None:
    """The first folder in which there is something of that name."""
    return next((folder for folder in folders if is_there(folder / text)), None)


def _begins_a_name(place: Path) -> bool:
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
