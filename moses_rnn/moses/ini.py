"""moses.ini: find the lines that concern a phrase table.

Grammar as moses/Parameter.cpp reads it: ``#`` comments anywhere, ``[section]`` headers, ``Type key=value …`` feature
lines split at blanks and tabs and nothing else, ``Name= w1 w2 …`` weight lines with a blank behind ``=``.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from moses_rnn.errors import FormatError, InputError, number_of
from moses_rnn.files.streams import GZIP
from moses_rnn.moses.dictionaries import BINARY, DICTIONARY_TYPES
from moses_rnn.table.phrase_table import FLOAT32_LIMIT, NUMBER

WEIGHT = re.compile(NUMBER.pattern.decode())
OLD_SECTIONS = ("ttable-file", "weight-t")  # for phrase tables, before [feature] existed
OVERRIDES = ("path", "tuneable", "tuneable-components")  # settings on which an extension or MERT relies
# Which words of an ini are paths
SUFFIXES = ("", ".gz", ".minphr", ".minlexr")  # that Moses appends to names
LISTS = "^(lex-[ef]2[ef]|references)$"  # keys with comma-separated paths
KEYS = re.compile(  # how Moses's features call what they read
    "(^|[-_])(path|file|dir|list|vocab|vocabulary)([-_]|$)|File$|^sparse-(words|clusters|weights)|^(base|extra)$"
    f"|{LISTS}"
)
SETTINGS = frozenset({"feature", "feature-add", "feature-overwrite", "alternate-weight-setting"})  # lines of key=value
# Sections whose lines begin with a path
READ = frozenset({"weight-file", "input-file", "unknown-lhs", "spe-src", "spe-trg", "spe-aln"})
READS_ALL = "VWFeatureTargetPhraseScores"  # unless use= names features


@dataclass(frozen=True)
class Feature:
    """A line of ``[feature]``; `line` counts from 0."""

    type: str
    name: str
    options: dict[str, str]
    line: int


class RelativePath(NamedTuple):
    """The position of a relative path, and its folder."""

    line: int  # from 0
    column: int
    text: str
    folder: Path


class MosesIni:
    """A parsed moses.ini with its `lines`; raises FormatError at the first line that Moses would misread."""

    def __init__(self, data: bytes, name: str) -> None:
        self.name = name
        if data.startswith(GZIP):
            raise FormatError(name, None, "plain text, because Moses reads no compressed ini", "a compressed file")
        self.lines = data.decode("utf-8", "surrogateescape").split("\n")
        self._sections = [*_sections_of(self.lines)]
        if not self.has_features and (old := self.section(*OLD_SECTIONS)):
            found = f"[{dict(self._sections)[old[0][0]]}], of the old format"
            advice = "Convert it first: $MOSES_ROOT/scripts/training/convert-moses-ini-to-v2.perl < OLD_INI > NEW_INI"
            raise self.error(old[0][0], "phrase dictionaries in [feature]", found, advice)
        self.features = [*self._read_features()]
        self.phrase_dictionaries = [feature for feature in self.features if feature.type in DICTIONARY_TYPES]

    def _read_features(self) -> Iterator[Feature]:
        unnamed: Counter[str] = Counter()
        for index, line in self.section("feature", "feature-add"):  # as Moses appends them
            kind, *settings = tokens(line)
            options: dict[str, str] = {}
            for setting in settings:
                key, equals, value = setting.partition("=")
                if kind in DICTIONARY_TYPES and (not equals or key in options):
                    problem = "given twice" if equals else "without '='"
                    raise self.error(index, "key=value settings, each once", f"{setting!r} {problem}")
                options[key] = value
            yield Feature(kind, options.get("name", f"{kind}{unnamed[kind]}"), options, index)
            unnamed[kind] += "name" not in options

    def section(self, *names: str) -> list[tuple[int, str]]:
        """Return indices and contents of the non-empty lines of these sections, without comments."""
        return [(i, code_of(self.lines[i])) for name in names for i, section in self._sections if section == name]

    def error(self, index: int | None, expected: str, found: str, advice: str = "") -> FormatError:
        """Return a FormatError about a line, given its index, or about the whole file."""
        return FormatError(self.name, None if index is None else index + 1, expected, found, advice)

    def choose(self, *, name: str | None = None, table: str | None = None) -> Feature:
        """Choose a phrase dictionary by its name or path, by its table's path, or because it is the only one."""
        candidates = self.phrase_dictionaries
        if name is not None:
            named = [feature for feature in candidates if feature.name == name]
            candidates = named or [feature for feature in candidates if self.is_path_of(feature, name)]
        elif len(candidates) > 1 and table is not None:
            candidates = [feature for feature in candidates if self.is_path_of(feature, table)]
        if len(candidates) == 1:
            return candidates[0]
        known = ", ".join(feature.name for feature in self.phrase_dictionaries) or "none"
        wanted = f"named {name!r}" if name is not None else f"for {table}"
        raise InputError(
            f"{self.name}: expected one phrase dictionary {wanted}, found {len(candidates)} (in the file: {known})",
            advice="Choose one with --feature NAME of moses-rnn ini or moses-rnn verify."
            if self.phrase_dictionaries
            else "",
        )

    @property
    def has_features(self) -> bool:
        """Whether it has features; an ini for reranking n-best lists has only weights."""
        return bool(self.section("feature"))

    def places(self, feature: Feature, *suffixes: str, key: str = "path") -> list[Path]:
        """Return existing paths of the feature's ``path=`` plus a suffix, relative to the ini's folder or to here."""
        written = feature.options.get(key, "")
        places = [folder / (written + suffix) for folder in (Path(self.name).parent, Path()) for suffix in suffixes]
        return [place for place in places if written and is_there(place)]

    def is_path_of(self, feature: Feature, table: str) -> bool:
        """Whether the feature's ``path=`` is this text table, or the dictionary beside it that was made from it."""
        name = BINARY[feature.type].path_for(table) if feature.type in BINARY else table
        files = [Path(file) for file in (name, f"{name}.gz") if is_there(Path(file))]
        return any(place.samefile(file) for file in files[:1] for place in self.places(feature, *SUFFIXES))

    def check_alone(self, feature: Feature) -> None:
        """Raise an error if a dictionary's number of scores also appears where an extension does not edit it."""
        for other in self.features:
            if other is not feature and other.name == feature.name:
                raise self.error(other.line, f"one feature named {feature.name}", "another", "Give each a name=.")
            for key, value in other.options.items():  # of a group, a mixture or VW
                if other is not feature and key not in ("name", "path") and feature.name in value.split(","):
                    advice = "It depends on the number of scores. Extend it by hand, or use an ini without it."
                    raise self.error(other.line, f"no feature that uses {feature.name}", f"{key}={value}", advice)
        for index, line in self.section("weight-overwrite"):
            if f"{feature.name}=" in tokens(line):
                advice = "These weights override [weight] and would be too few: remove them, or move them to [weight]."
                raise self.error(index, f"no {feature.name}= in [weight-overwrite]", repr(line), advice)

    def check_not_read(self, feature: Feature) -> None:
        """Raise an error if a classifier reads the scores of all features: it would not know the new ones."""
        for other in self.features:
            if other.type == READS_ALL and not other.options.get("use"):
                advice = (
                    f"It reads the scores of all features. Name those that it knows with use=, but not {feature.name}."
                )
                raise self.error(other.line, f"{READS_ALL} with use=", "none", advice)

    def check_not_overridden(self, feature: Feature) -> None:
        """Raise an error if the ini changes a dictionary's type or settings elsewhere."""
        for index, line in self.section("feature-overwrite"):
            name, *settings = tokens(line)
            if name == feature.name and {setting.partition("=")[0] for setting in settings}.intersection(OVERRIDES):
                expected = f"no {', '.join(OVERRIDES)} of {name} in [feature-overwrite]"
                raise self.error(index, expected, repr(line), "It overrides [feature]. Move it there.")
        for index, line in self.section("feature-name-overwrite"):
            if feature.type in tokens(line)[::2]:
                advice = "Write its new type in [feature]."
                raise self.error(index, f"no {feature.type} in [feature-name-overwrite]", repr(line), advice)

    def declared(self, feature: Feature) -> int:
        """Return a phrase dictionary's number of scores, as declared in the ini."""
        number = feature.options.get("num-features", "")
        if not re.fullmatch("[0-9]{1,4}", number):
            found = f"num-features={number}" if number else "no num-features"
            raise self.error(feature.line, "num-features= and a number", found)
        return int(number)

    def weight_lines(self, feature: Feature, columns: int) -> list[tuple[int, list[float]]]:
        """Return indices and values of a feature's weight lines: of ``[weight]``, then of alternate settings."""
        own, alternate = (
            [(i, tokens(line)) for i, line in self.section(section) if tokens(line)[0][:-1] == feature.name]
            for section in ("weight", "alternate-weight-setting")
        )  # Moses drops the last character of the name, whatever it is
        if len(own) != 1:
            advice = "Moses needs a blank after the '=', and uses the last line if there are several."
            raise self.error(None, f"one line '{feature.name}= w w …' in [weight]", f"{len(own)}", advice)
        lines = [(index, [weight_of(value) for value in values]) for index, (_, *values) in own + alternate]
        for index, weights in lines:
            if not all(abs(weight) < FLOAT32_LIMIT for weight in weights):
                found = " ".join(tokens(code_of(self.lines[index]))[1:])
                raise self.error(index, "finite numbers as weights", repr(found))
            if len(weights) != columns:
                raise self.error(index, f"{number_of(columns, 'weight')}, one for each score", f"{len(weights)}")
        return lines

    def weights(self, feature: Feature) -> list[float]:
        """Return the weights of a phrase dictionary, one per score."""
        return self.weight_lines(feature, self.declared(feature))[0][1]

    def all_weights(self) -> dict[str, list[float]]:
        """Return the weights of all features, ``nan`` if not a number; the last of several lines counts, as in Moses.

        ``[weight-overwrite]`` wins over ``[weight]``; an ``x`` there keeps a number (moses/Parameter.cpp).
        """
        weights = {}
        for index, line in self.section("weight-add", "weight"):
            name, *values = tokens(line)
            if not values:  # a '#' in a name begins a comment
                raise self.error(index, "a feature's name with '=', a blank and weights", repr(name))
            weights[name[:-1]] = [weight_of(value) for value in values]
        for index, line in self.section("weight-overwrite"):
            before: list[float] = []
            kept: list[float] | None = None
            for word in tokens(line):
                if word.endswith("="):
                    before, kept = weights.get(word[:-1], []), []
                    weights[word[:-1]] = kept
                elif kept is None:
                    raise self.error(index, "a feature's name and '=' before its weights", repr(word))
                else:
                    kept.append(before[len(kept)] if word == "x" and len(kept) < len(before) else weight_of(word))
        return weights

    def tuneable_components(self) -> dict[str, list[bool]]:
        """Return, by feature with tuneable-components, which scores MERT tunes and n-best lists show."""
        key = "tuneable-components"
        values = {feature.name: feature.options[key].split(",") for feature in self.features if key in feature.options}
        return {name: list(map(_is_true, flags)) for name, flags in values.items()}

    def untuneable(self) -> list[str]:
        """Return the names of features with ``tuneable=false``, whose values n-best lists do not show."""
        return [feature.name for feature in self.features if not _is_true(feature.options.get("tuneable", "true"))]

    def table_limit(self, feature: Feature) -> int | None:
        """Return a phrase dictionary's ``table-limit``; None if it has none. ``[feature-overwrite]`` wins."""
        limit = feature.options.get("table-limit", "")
        for _, line in self.section("feature-overwrite"):
            name, *settings = tokens(line)
            for setting in settings if name == feature.name else ():
                key, _, value = setting.partition("=")
                limit = value if key == "table-limit" else limit
        return int(limit) if limit.isdecimal() else None

    @property
    def relative_paths(self) -> list[RelativePath]:
        """Return paths that depend on Moses's working directory, resolved from the ini's folder, or else from here."""
        folders, paths = (Path(self.name).absolute().parent, Path.cwd()), []
        for index, section in self._sections:
            for column, key, text in _texts(section, self.lines[index], folders):
                if folder := _folder_of(key, text, folders):
                    paths.append(RelativePath(index, column, text, folder))
        return paths


def _sections_of(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield index and section of each content line, skipping headers, comments and empty lines."""
    section = ""
    for index, line in enumerate(lines):
        code = code_of(line)
        if code.startswith("["):  # Moses ignores what follows the closing bracket
            section = code[1:].partition("]")[0] if "]" in code else section
        elif code:
            yield index, section


def _is_true(value: str) -> bool:
    return value.lower() in ("true", "yes", "y", "1")


def code_of(line: str) -> str:
    """Return a line without its comment and surrounding white space."""
    return line.partition("#")[0].strip(" \t\r\n")


def tokens(line: str) -> list[str]:
    """Split a line into words as Moses does: not at U+00A0, U+3000 or a form feed."""
    return [word for word in re.split("[ \t]", line) if word]


def weight_of(word: str) -> float:
    """Parse a number as Moses does; return ``nan`` for anything else."""
    return float(word) if WEIGHT.fullmatch(word) else math.nan


def _texts(section: str, line: str, folders: Sequence[Path]) -> Iterator[tuple[int, str, str]]:
    """Yield possible paths in a line: position, key (of the path that a line begins with, "path"), and path."""
    code = line.partition("#")[0].rstrip(" \t\r")  # a CR inside a word is part of it
    for number, word in enumerate(re.finditer("[^ \t]+", code)):
        key, equals, value = word.group().partition("=")
        if section in READ and not number:
            yield word.start(), "path", word.group()
        if not (section in SETTINGS and equals):
            continue
        column = word.end() - len(value)
        for text in _parts(key, value, folders):
            yield column, key, text
            column += len(text) + 1


def _parts(key: str, value: str, folders: Sequence[Path]) -> list[str]:
    """Split a value into paths: some features take several, others one path that may contain a comma."""
    parts = value.split(",")
    if re.search(LISTS, key):
        return parts
    return parts if not _first(folders, value) and all(_first(folders, part) for part in parts) else [value]


def _folder_of(key: str, text: str, folders: Sequence[Path]) -> Path | None:
    """Return the folder of a relative path; None if the text is none, or may be none."""
    if not text or text.startswith("/") or "://" in text:
        return None
    if KEYS.search(key):
        known = (folder for folder in folders if any(is_there(folder / f"{text}{suffix}") for suffix in SUFFIXES))
        longer = (folder for folder in folders if begins_a_name(folder / text))
        return next(known, None) or next(longer, folders[0])
    return _first(folders, text) if "/" in text or "." in text else None


def _first(folders: Sequence[Path], text: str) -> Path | None:
    """Return the first folder that contains that path."""
    return next((folder for folder in folders if is_there(folder / text)), None)


def begins_a_name(place: Path) -> bool:
    """Whether a path, or a longer one, exists: Moses appends .gz and the like to some."""
    try:
        return place.exists() or any(other.name.startswith(place.name) for other in place.parent.iterdir())
    except (OSError, ValueError):
        return False


def is_there(place: Path) -> bool:
    """Whether a path exists; False if the system cannot look it up."""
    try:
        return place.exists()
    except OSError:
        return False


def factor_list(count: int) -> str:
    """Return the factors as in an ini: ``0,1`` for two."""
    return ",".join(map(str, range(count)))


def is_readable_path(path: str) -> bool:
    """Whether Moses can read a path in an ini, where blanks separate words and '#' begins a comment."""
    return re.search(r"[ \t\r\n#]", path) is None
