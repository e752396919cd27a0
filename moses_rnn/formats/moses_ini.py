"""moses.ini: what names a phrase table, and what else concerns it.

Grammar as moses/Parameter.cpp reads it: ``#`` comments anywhere, ``[section]`` headers, ``Type key=value …`` feature
lines split at blanks and tabs and nothing else, ``Name= w1 w2 …`` weight lines with a blank behind ``=``.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from moses_rnn.errors import FormatError, InputError
from moses_rnn.formats.dictionaries import DICTIONARY_TYPES
from moses_rnn.formats.ini_lines import code_of, encode_lines, is_readable_path, sections_of, tokens, weight_of
from moses_rnn.formats.ini_paths import RelativePath, is_there, relative_paths
from moses_rnn.formats.phrase_table import FLOAT32_LIMIT

DEFAULT_WEIGHT = 0.2  # what train-model.perl gives each phrase-table score
OLD_SECTIONS = ("ttable-file", "weight-t")  # of phrase tables, before there was [feature]
READABLE = "a path that Moses can read (no blanks, no '#')"
UNREADABLE = "Move it to a folder without them, or keep paths relative: moses-rnn ini without --absolute-paths."
OVERRIDES = ("path", "tuneable", "tuneable-components")  # what an extension or MERT relies on


@dataclass(frozen=True)
class Feature:
    """A line of ``[feature]``; `line` counts from 0."""

    type: str
    name: str
    options: dict[str, str]
    line: int


class MosesIni:
    """A moses.ini, as its `lines`.

    Args:
        data: the file's bytes.
        name: of the file, for messages.

    Raises:
        FormatError: at the first line that Moses itself would not read as meant.
    """

    def __init__(self, data: bytes, name: str) -> None:
        self.name = name
        self.lines = data.decode("utf-8", "surrogateescape").split("\n")
        self._sections = sections_of(self.lines)
        self._features = self._find_features()
        self.phrase_dictionaries = [feature for feature in self._features if feature.type in DICTIONARY_TYPES]

    def _find_features(self) -> list[Feature]:
        features: list[Feature] = []
        for index, line in self.section("feature") + self.section("feature-add"):  # as Moses appends them
            kind, *settings = tokens(line)
            options: dict[str, str] = {}
            for setting in settings:
                key, equals, value = setting.partition("=")
                if kind in DICTIONARY_TYPES and (not equals or key in options):
                    problem = "given twice" if equals else "without '='"
                    raise self.error(index, "key=value settings, each once", f"{setting!r} {problem}")
                options[key] = value
            unnamed = f"{kind}{sum(feature.type == kind and 'name' not in feature.options for feature in features)}"
            features.append(Feature(kind, options.get("name", unnamed), options, index))
        return features

    def section(self, name: str) -> list[tuple[int, str]]:
        """Non-empty lines of every section of that name, without comments, with their indices."""
        return [(i, code_of(self.lines[i])) for i, section in enumerate(self._sections) if section == name]

    def error(self, index: int | None, expected: str, found: str, advice: str = "") -> FormatError:
        """What to raise about a line, by its index, or about the whole file."""
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
        self._refuse_old_format()
        known = ", ".join(feature.name for feature in self.phrase_dictionaries) or "none"
        wanted = f"named {name!r}" if name is not None else f"for {table}"
        raise InputError(
            f"{self.name}: expected one phrase dictionary {wanted}, found {len(candidates)} (in the file: {known})",
            advice="Name the one to extend with --feature." if self.phrase_dictionaries else "",
        )

    def _refuse_old_format(self) -> None:
        old = [line for section in OLD_SECTIONS for line in self.section(section)]
        if old and not self.has_features:
            index, _ = old[0]
            found = f"[{self._sections[index]}], of the old format"
            advice = "Convert it first: $MOSES_ROOT/scripts/training/convert-moses-ini-to-v2.perl < OLD_INI > NEW_INI"
            raise self.error(index, "phrase dictionaries in [feature]", found, advice)

    def is_path_of(self, feature: Feature, table: str) -> bool:
        """Whether the feature's ``path=`` (or that with .gz) is that file, seen from here or from the ini's folder."""
        return any(place.samefile(table) for place in self._places(feature) if is_there(place) and Path(table).exists())

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
        return next((place for place in places if written and is_there(place)), None)

    def path_like(self, feature: Feature, table: Path) -> str:
        """How a new table is to be written into the ini: relative if the old one is and lies in the same folder."""
        if not feature.options.get("path"):
            raise self.error(feature.line, "path= in the phrase dictionary", "none")
        written = Path(feature.options["path"])
        folders = [place.parent for place in self._places(feature) if is_there(place)]
        if written.is_absolute() or not any(folder.samefile(table.absolute().parent) for folder in folders):
            return str(table.absolute())
        return str(written.with_name(table.name))

    def check_alone(self, feature: Feature) -> None:
        """Refuse a dictionary whose numbers stand in more places than those that an extension edits.

        Raises:
            FormatError: they do.
        """
        for other in self._features:
            if other is not feature and other.name == feature.name:
                raise self.error(other.line, f"one feature named {feature.name}", "another", "Give each a name=.")
            for key, value in other.options.items():  # of a group, a mixture or VW
                if other is not feature and key not in ("name", "path") and feature.name in value.split(","):
                    advice = "It depends on the number of scores. Extend it by hand, or use an ini without it."
                    raise self.error(other.line, f"no feature that uses {feature.name}", f"{key}={value}", advice)
        for index, line in self.section("weight-overwrite"):
            if f"{feature.name}=" in tokens(line):
                advice = "These weights win over [weight] and would be too few: remove them, or move them there."
                raise self.error(index, f"no {feature.name}= in [weight-overwrite]", repr(line), advice)

    def check_not_overridden(self, feature: Feature) -> None:
        """Refuse a dictionary whose type or settings are changed elsewhere in the ini.

        Raises:
            FormatError: they are.
        """
        for index, line in self.section("feature-overwrite"):
            name, *settings = tokens(line)
            if name == feature.name and {setting.partition("=")[0] for setting in settings}.intersection(OVERRIDES):
                expected = f"no {', '.join(OVERRIDES)} of {name} in [feature-overwrite]"
                raise self.error(index, expected, repr(line), "It overrides [feature]. Move it there.")
        for index, line in self.section("feature-name-overwrite"):
            if feature.type in tokens(line)[::2]:
                advice = "Write the type that it becomes into [feature]."
                raise self.error(index, f"no {feature.type} in [feature-name-overwrite]", repr(line), advice)

    def weight_line(self, feature: Feature, columns: int) -> tuple[int, list[float]]:
        """The index of a feature's weight line and its numbers.

        Raises:
            FormatError: there is not exactly one, or it does not have a finite number for each score.
        """
        lines = self._weights_of(feature, "weight")
        if len(lines) != 1:
            raise self.error(
                None,
                f"one line '{feature.name}= w w …' in [weight]",
                f"{len(lines)}",
                "Moses wants a blank behind the '=' and takes the last of several.",
            )
        return self._read_weights(*lines[0], columns)

    def weight_lines(self, feature: Feature, columns: int) -> list[tuple[int, list[float]]]:
        """The same of all lines with a feature's weights: that of ``[weight]``, and those of alternate settings.

        Raises:
            FormatError: see `weight_line`.
        """
        others = self._weights_of(feature, "alternate-weight-setting")
        return [self.weight_line(feature, columns), *(self._read_weights(*line, columns) for line in others)]

    def _weights_of(self, feature: Feature, section: str) -> list[tuple[int, str]]:
        """Lines of a section that begin with a feature's name; Moses drops its last character, whatever it is."""
        return [(i, line) for i, line in self.section(section) if tokens(line)[0][:-1] == feature.name]

    def _read_weights(self, index: int, line: str, columns: int) -> tuple[int, list[float]]:
        values = tokens(line)[1:]
        weights = [weight_of(value) for value in values]
        if not all(abs(weight) < FLOAT32_LIMIT for weight in weights):
            raise self.error(index, "finite numbers as weights", repr(" ".join(values)))
        if len(values) != columns:
            raise self.error(index, f"{columns} weights, one for each score", f"{len(values)}")
        return index, weights

    def declared(self, feature: Feature) -> int:
        """How many scores the ini says that a phrase dictionary has.

        Raises:
            FormatError: it does not say.
        """
        number = feature.options.get("num-features", "")
        if not re.fullmatch("[0-9]{1,4}", number):
            found = f"num-features={number}" if number else "no num-features"
            raise self.error(feature.line, "num-features= and a number", found)
        return int(number)

    def weights(self, feature: Feature) -> list[float]:
        """The weights of a phrase dictionary.

        Raises:
            FormatError: they are not as many as its scores.
        """
        return self.weight_line(feature, self.declared(feature))[1]

    @property
    def has_features(self) -> bool:
        """Whether it says what a decoder shall use; weights for an n-best list stand alone."""
        return bool(self.section("feature"))

    def all_weights(self) -> dict[str, list[float]]:
        """The weights of all features, ``nan`` for other than numbers; of several lines the last, as in Moses.

        ``[weight-overwrite]`` wins over ``[weight]``; an ``x`` there keeps a number (moses/Parameter.cpp).
        """
        weights = {}
        for _, line in [*self.section("weight-add"), *self.section("weight")]:
            name, *values = tokens(line)
            if name.endswith("="):
                weights[name[:-1]] = [weight_of(value) for value in values]
        for _, line in self.section("weight-overwrite"):
            name, before = "", []
            for word in tokens(line):
                if word.endswith("="):
                    name, before = word[:-1], weights.get(word[:-1], [])
                    weights[name] = []
                else:
                    kept = weights[name]
                    kept.append(before[len(kept)] if word == "x" and len(kept) < len(before) else weight_of(word))
        return weights

    def tuneable_components(self) -> dict[str, list[bool]]:
        """By feature name, which of its scores MERT tunes and n-best lists show, where it has tuneable-components."""
        unnamed: Counter[str] = Counter()
        components = {}
        for _, line in self.section("feature"):
            kind, *settings = tokens(line)
            options = dict(setting.split("=", 1) for setting in settings if "=" in setting)
            name = options.get("name") or f"{kind}{unnamed[kind]}"
            unnamed[kind] += "name" not in options
            if "tuneable-components" in options:
                values = options["tuneable-components"].split(",")
                components[name] = [value.lower() in ("true", "yes", "y", "1") for value in values]
        return components

    @property
    def relative_paths(self) -> list[RelativePath]:
        """What depends on where Moses is run; we see it from the ini's folder, or from here if only that is there."""
        return list(relative_paths(self.lines, self._sections, (Path(self.name).absolute().parent, Path.cwd())))

    def with_absolute_paths(self) -> bytes:
        """The ini with every relative path made absolute that is one for certain.

        Raises:
            FormatError: Moses could not read it.
        """
        lines = list(self.lines)
        for path in reversed(self.relative_paths):
            if path.folder:
                if not is_readable_path(str(path.folder)):
                    raise self.error(path.line, READABLE, repr(f"{path.folder}/{path.text}"), UNREADABLE)
                line = lines[path.line]
                lines[path.line] = f"{line[: path.column]}{path.folder}/{line[path.column :]}"
        return encode_lines(lines)

    def lines_of(self, feature_name: str) -> tuple[str, str]:
        """The ``[feature]`` line and the ``[weight]`` line of a phrase dictionary, without comments."""
        feature = self.choose(name=feature_name)
        weight_line, _ = self.weight_line(feature, int(feature.options["num-features"]))
        return code_of(self.lines[feature.line]), code_of(self.lines[weight_line])
