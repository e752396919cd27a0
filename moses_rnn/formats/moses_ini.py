"""moses.ini: read what names a phrase table, and change only that.

Grammar as moses/Parameter.cpp reads it: ``#`` comments anywhere, ``[section]`` headers, ``Type key=value …`` feature
lines split at blanks and tabs and nothing else, ``Name= w1 w2 …`` weight lines with a blank behind ``=``.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

from moses_rnn.errors import FormatError, InputError
from moses_rnn.formats.dictionaries import DICTIONARY_TYPES, TEXT_TYPES, factor_list
from moses_rnn.formats.ini_lines import (
    code_of,
    is_readable_path,
    joined,
    sections_of,
    seen_from,
    tokens,
    with_options,
    with_type,
    with_weights,
)
from moses_rnn.formats.phrase_table import FLOAT32_LIMIT

NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
DEFAULT_WEIGHT = 0.2  # what train-model.perl gives each phrase-table score


@dataclass(frozen=True)
class Feature:
    """A phrase-dictionary line of ``[feature]``; `line` counts from 0."""

    type: str
    name: str
    options: dict[str, str]
    line: int


@dataclass(frozen=True)
class Extension:
    """What is added to a phrase dictionary: the table that has the new columns, and their starting weights.

    `table` is the new path; `old_columns` is how many scores the old table has; `weights` are the starting weights of
    the added columns, or None for the mean absolute weight of the old ones. `type` is what the dictionary becomes; None
    leaves a text table one, and refuses any other.
    """

    table: str
    old_columns: int
    added_columns: int
    weights: tuple[float, ...] | None = None
    type: str | None = None


class MosesIni:
    """The lines of a moses.ini.

    Args:
        data: the file's bytes.
        name: of the file, for messages.

    Raises:
        FormatError: at the first line that Moses itself would not read as meant.
    """

    def __init__(self, data: bytes, name: str) -> None:
        self.name = name
        self._lines = data.decode("utf-8", "surrogateescape").split("\n")
        self._sections = sections_of(self._lines)
        self.phrase_dictionaries = self._find_phrase_dictionaries()

    def _find_phrase_dictionaries(self) -> list[Feature]:
        found: list[Feature] = []
        for index, line in self._section("feature"):
            kind, *settings = tokens(line)
            if kind not in DICTIONARY_TYPES:
                continue
            options: dict[str, str] = {}
            for setting in settings:
                key, equals, value = setting.partition("=")
                if not equals or key in options:
                    problem = "given twice" if equals else "without '='"
                    raise self._error(index, "key=value settings, each once", f"{setting!r} {problem}")
                options[key] = value
            unnamed = f"{kind}{sum(feature.type == kind and 'name' not in feature.options for feature in found)}"
            found.append(Feature(kind, options.get("name", unnamed), options, index))
        return found

    def _section(self, name: str) -> list[tuple[int, str]]:
        """Non-empty lines of every section of that name, without comments, with their indices."""
        return [(i, code_of(self._lines[i])) for i, section in enumerate(self._sections) if section == name]

    def _error(self, index: int | None, expected: str, found: str, advice: str = "") -> FormatError:
        return FormatError(self.name, None if index is None else index + 1, expected, found, advice)

    def choose(self, *, name: str | None = None, table: str | None = None) -> Feature:
        """The phrase dictionary that is meant: by its name, else by its table's path, else the only one.

        Raises:
            InputError: there is none, or more than one could be meant.
        """
        candidates = self.phrase_dictionaries
        if name is not None:
            candidates = [feature for feature in candidates if feature.name == name]
        elif len(candidates) > 1 and table is not None:
            candidates = [feature for feature in candidates if self.is_path_of(feature, table)]
        if len(candidates) == 1:
            return candidates[0]
        known = ", ".join(feature.name for feature in self.phrase_dictionaries) or "none"
        wanted = f"named {name!r}" if name is not None else f"for {table}"
        raise InputError(
            f"{self.name}: expected one phrase dictionary {wanted}, found {len(candidates)} (in the file: {known})",
            advice="Name the one to extend with --feature.",
        )

    def is_path_of(self, feature: Feature, table: str) -> bool:
        """Whether the feature's ``path=`` (or that with .gz) is that file, seen from here or from the ini's folder."""
        return any(
            place.samefile(table) for place in self._places(feature) if _is_there(place) and Path(table).exists()
        )

    def _places(self, feature: Feature) -> list[Path]:
        written = feature.options.get("path", "")
        names = (written, written + ".gz")
        return [folder / name for folder in (Path(), Path(self.name).parent) for name in names]

    def place_of(self, feature: Feature) -> Path | None:
        """Where the feature's ``path=`` leads, seen from here or from the ini's folder; None if there is nothing.

        The decoder puts no .gz behind it, nor do we.
        """
        written = feature.options.get("path", "")
        places = (Path(written), Path(self.name).parent / written)
        return next((place for place in places if written and _is_there(place)), None)

    def path_like(self, feature: Feature, table: Path) -> str:
        """How a new table is to be written into the ini: relative if the old one is and lies in the same folder."""
        written = Path(feature.options.get("path", ""))
        folders = [place.parent for place in self._places(feature) if _is_there(place)]
        if written.is_absolute() or not any(folder.samefile(table.absolute().parent) for folder in folders):
            return str(table.absolute())
        return str(written.with_name(table.name))

    def extended(self, feature: Feature, extension: Extension) -> bytes:
        """The ini with more columns in one phrase dictionary: num-features, path and weights; no other byte differs.

        Raises:
            FormatError: the dictionary is not a text table, or its numbers contradict each other or the table.
        """
        self._check_extendable(feature, extension)
        lines = list(self._lines)
        total = extension.old_columns + extension.added_columns
        lines[feature.line] = with_options(
            _retyped(lines[feature.line], feature, extension.type or feature.type),
            {
                "num-features": lambda _: str(total),
                "path": lambda _: extension.table,
                "tuneable-components": lambda old: old + ",1" * extension.added_columns,
            },
        )
        weight_line, old_weights = self._weights(feature, extension.old_columns)
        lines[weight_line] = with_weights(lines[weight_line], starting_weights(extension, old_weights))
        return "\n".join(lines).encode("utf-8", "surrogateescape")

    def _check_extendable(self, feature: Feature, extension: Extension) -> None:
        at = feature.line
        later = [
            other
            for other in self.phrase_dictionaries
            if other.type == feature.type and "name" not in other.options and other.line > feature.line
        ]
        if extension.type not in (None, feature.type) and "name" not in feature.options and later:
            advice = (
                "Moses would count it anew if the type of the one above changed. Give both a name=, and their weights."
            )
            raise self._error(later[0].line, f"no further {feature.type} without a name=", later[0].name, advice)
        if extension.type is None and feature.type not in TEXT_TYPES:
            raise self._error(
                at,
                f"a text table ({', '.join(sorted(TEXT_TYPES))})",
                feature.type,
                "Score the text table it was made from without --moses-ini; moses-rnn-ini then makes the ini and says "
                "how to binarise the result.",
            )
        declared = feature.options.get("num-features", "")
        other_table = "Is this the ini of another table?"
        extended_already = (
            "Has it been extended already? Then it loads a scored table: give the ini that the table had before."
        )
        if declared != str(extension.old_columns):
            raise self._error(
                at,
                f"num-features={extension.old_columns} as the table's scores",
                f"num-features={declared}" if declared else "no num-features",
                extended_already if declared.isdigit() and int(declared) > extension.old_columns else other_table,
            )
        if "path" not in feature.options:
            raise self._error(at, "a path= setting", "none")
        if not is_readable_path(extension.table):
            raise self._error(at, "a path that Moses can read (no blanks, no '#')", repr(extension.table))
        self.check_alone(feature)

    def check_alone(self, feature: Feature) -> None:
        """Refuse a dictionary whose numbers stand in more places than its own lines.

        Raises:
            FormatError: they do.
        """
        for group in self.phrase_dictionaries:
            if feature.name in group.options.get("members", "").split(","):
                advice = "The group's own num-features and weights would have to grow too: edit them by hand."
                raise self._error(group.line, f"no group with {feature.name} as a member", group.name, advice)
        for index, line in self._section("weight-overwrite"):
            if f"{feature.name}=" in tokens(line):
                advice = "These weights win over [weight] and would be too few: remove them, or move them there."
                raise self._error(index, f"no {feature.name}= in [weight-overwrite]", repr(line), advice)

    def warnings(self, feature: Feature, table: str) -> tuple[str, ...]:
        """What a user should know before the dictionary is extended for the scores of a table."""
        found = []
        if not self.is_path_of(feature, table):
            found.append(
                f"{self.name}:{feature.line + 1}: {feature.name} has path={feature.options.get('path', '')}, which is "
                f"not the scored table {table}: is this the right ini?"
            )
        if feature.options.get("tuneable") in ("false", "0"):
            found.append(
                f"{self.name}:{feature.line + 1}: {feature.name} has tuneable=false: MERT will leave the new weight "
                "as it is"
            )
        return tuple(found)

    def _weights(self, feature: Feature, columns: int) -> tuple[int, list[float]]:
        """The index of a feature's weight line and its numbers."""
        found = [(i, tokens(line)) for i, line in self._section("weight") if tokens(line)[0] == f"{feature.name}="]
        if len(found) != 1:
            raise self._error(
                None,
                f"one line '{feature.name}= w w …' in [weight]",
                f"{len(found)}",
                "Moses wants a blank behind the '=' and takes the last of several.",
            )
        index, (_, *values) = found[0]
        if not all(NUMBER.fullmatch(value) and abs(float(value)) < FLOAT32_LIMIT for value in values):
            raise self._error(index, "finite numbers as weights", repr(" ".join(values)))
        if len(values) != columns:
            raise self._error(index, f"{columns} weights, one for each score", f"{len(values)}")
        return index, [float(value) for value in values]

    def declared(self, feature: Feature) -> int:
        """How many scores the ini says that a phrase dictionary has.

        Raises:
            FormatError: it does not say.
        """
        number = feature.options.get("num-features", "")
        if not re.fullmatch("[0-9]{1,4}", number):
            found = f"num-features={number}" if number else "no num-features"
            raise self._error(feature.line, "num-features= and a number", found)
        return int(number)

    def weights(self, feature: Feature) -> list[float]:
        """The weights of a phrase dictionary.

        Raises:
            FormatError: they are not as many as its scores.
        """
        return self._weights(feature, self.declared(feature))[1]

    @property
    def has_features(self) -> bool:
        """Whether it says what a decoder shall use; weights for an n-best list stand alone."""
        return bool(self._section("feature"))

    def all_weights(self) -> dict[str, list[float]]:
        """The dense weights of all features, ``nan`` for what is no number; of several lines the last, as in Moses."""
        found = {}
        for _, line in self._section("weight"):
            name, *values = tokens(line)
            if name.endswith("="):
                found[name[:-1]] = [float(value) if NUMBER.fullmatch(value) else math.nan for value in values]
        return found

    def with_absolute_paths(self) -> bytes:
        """The ini with every relative ``path=`` of a feature made absolute, seen from the ini's folder."""
        folder = Path(self.name).absolute().parent
        lines = list(self._lines)
        for index, _ in self._section("feature"):
            lines[index] = with_options(lines[index], {"path": lambda old: seen_from(folder, old)})
        return "\n".join(lines).encode("utf-8", "surrogateescape")

    def relative_paths(self) -> tuple[str, ...]:
        """All ``path=`` values of features that depend on where Moses is run."""
        paths = [word[5:] for _, line in self._section("feature") for word in tokens(line) if word.startswith("path=")]
        return tuple(path for path in paths if not path.startswith("/"))

    def lines_of(self, feature_name: str) -> tuple[str, str]:
        """The ``[feature]`` line and the ``[weight]`` line of a phrase dictionary, without comments."""
        feature = self.choose(name=feature_name)
        weight_line, _ = self._weights(feature, int(feature.options["num-features"]))
        return code_of(self._lines[feature.line]), code_of(self._lines[weight_line])


def default_lines(table: str, columns: int, factors: tuple[int, int] = (1, 1)) -> tuple[str, str]:
    """``[feature]`` and ``[weight]`` lines as train-model.perl writes them, for a table with so many columns."""
    source, target = map(factor_list, factors)
    feature = f"PhraseDictionaryMemory name=TranslationModel0 num-features={columns} path={table}"
    return (
        f"{feature} input-factor={source} output-factor={target}",
        f"TranslationModel0= {joined([DEFAULT_WEIGHT] * columns)}",
    )


def starting_weights(extension: Extension, old_weights: list[float]) -> list[float]:
    """Weights of the added columns before tuning: as given, else as large as the table's others on average."""
    if extension.weights is not None:
        return list(extension.weights)
    mean = sum(abs(weight) for weight in old_weights) / max(len(old_weights), 1)
    return [mean or DEFAULT_WEIGHT] * extension.added_columns


def _retyped(line: str, feature: Feature, kind: str) -> str:
    """A feature line for another type; what was named after its type keeps the name that its weights have."""
    if kind == feature.type:
        return line
    return with_type(line, feature.type, kind, "" if "name" in feature.options else f" name={feature.name}")


def _is_there(place: Path) -> bool:
    """Whether an ini's path leads somewhere; one that the system cannot even look up does not."""
    try:
        return place.exists()
    except OSError:
        return False
