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
from moses_rnn.formats.ini_lines import (
    code_of,
    encode_lines,
    sections_of,
    seen_from,
    tokens,
    weight_of,
    with_options,
)
from moses_rnn.formats.phrase_table import FLOAT32_LIMIT

DEFAULT_WEIGHT = 0.2  # what train-model.perl gives each phrase-table score


@dataclass(frozen=True)
class Feature:
    """A phrase-dictionary line of ``[feature]``; `line` counts from 0."""

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
        self.phrase_dictionaries = self._find_phrase_dictionaries()

    def _find_phrase_dictionaries(self) -> list[Feature]:
        features: list[Feature] = []
        for index, line in self.section("feature"):
            kind, *settings = tokens(line)
            if kind not in DICTIONARY_TYPES:
                continue
            options: dict[str, str] = {}
            for setting in settings:
                key, equals, value = setting.partition("=")
                if not equals or key in options:
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

    def check_alone(self, feature: Feature) -> None:
        """Refuse a dictionary whose numbers stand in more places than its own lines.

        Raises:
            FormatError: they do.
        """
        for group in self.phrase_dictionaries:
            if feature.name in group.options.get("members", "").split(","):
                advice = "The group's own num-features and weights would have to grow too: edit them by hand."
                raise self.error(group.line, f"no group with {feature.name} as a member", group.name, advice)
        for index, line in self.section("weight-overwrite"):
            if f"{feature.name}=" in tokens(line):
                advice = "These weights win over [weight] and would be too few: remove them, or move them there."
                raise self.error(index, f"no {feature.name}= in [weight-overwrite]", repr(line), advice)

    def warnings(self, feature: Feature, table: str) -> tuple[str, ...]:
        """What a user should know before the dictionary is extended for the scores of a table."""
        warnings = []
        if not self.is_path_of(feature, table):
            warnings.append(
                f"{self.name}:{feature.line + 1}: {feature.name} has path={feature.options.get('path', '')}, which is "
                f"not the scored table {table}: is this the right ini?"
            )
        if feature.options.get("tuneable") in ("false", "0"):
            warnings.append(
                f"{self.name}:{feature.line + 1}: {feature.name} has tuneable=false: MERT will leave the new weight "
                "as it is"
            )
        return tuple(warnings)

    def weight_line(self, feature: Feature, columns: int) -> tuple[int, list[float]]:
        """The index of a feature's weight line and its numbers.

        Raises:
            FormatError: there is not exactly one, or it does not have a finite number for each score.
        """
        lines = [(i, tokens(line)) for i, line in self.section("weight") if tokens(line)[0] == f"{feature.name}="]
        if len(lines) != 1:
            raise self.error(
                None,
                f"one line '{feature.name}= w w …' in [weight]",
                f"{len(lines)}",
                "Moses wants a blank behind the '=' and takes the last of several.",
            )
        index, (_, *values) = lines[0]
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

    def with_absolute_paths(self) -> bytes:
        """The ini with every relative ``path=`` of a feature made absolute, seen from the ini's folder."""
        folder = Path(self.name).absolute().parent
        lines = list(self.lines)
        for index, _ in self.section("feature"):
            lines[index] = with_options(lines[index], {"path": lambda old: seen_from(folder, old)})
        return encode_lines(lines)

    def relative_paths(self) -> tuple[str, ...]:
        """All ``path=`` values of features that depend on where Moses is run."""
        paths = [word[5:] for _, line in self.section("feature") for word in tokens(line) if word.startswith("path=")]
        return tuple(path for path in paths if not path.startswith("/"))

    def lines_of(self, feature_name: str) -> tuple[str, str]:
        """The ``[feature]`` line and the ``[weight]`` line of a phrase dictionary, without comments."""
        feature = self.choose(name=feature_name)
        weight_line, _ = self.weight_line(feature, int(feature.options["num-features"]))
        return code_of(self.lines[feature.line]), code_of(self.lines[weight_line])


def _is_there(place: Path) -> bool:
    """Whether an ini's path leads somewhere; one that the system cannot even look up does not."""
    try:
        return place.exists()
    except OSError:
        return False
