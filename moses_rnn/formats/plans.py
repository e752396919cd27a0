"""Plans of trials in TOML: which pipeline, and what varies from trial to trial.

work = "trials"                     # folder of all that is made
seeds = [1, 2, 3]                   # of the tunings of each system
[pipeline]                          # variables of the pipeline
[every]                             # settings of all trials that do not say otherwise
[[trial]]                           # name, settings, and in `grid` settings with lists of values to combine
"""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Protocol

from moses_rnn.errors import FormatError, InputError, shown_value
from moses_rnn.formats.plan_values import (
    COMBINATIONS,
    SETTINGS,
    TUNERS,
    VARIABLES,
    Table,
    Unexpected,
    check_name,
    check_seeds,
    check_table,
    check_tables,
    check_text,
)

NEEDED = ("SRC", "TRG", "DEV", "TEST")


class Options(Protocol):
    """The options of a command, as far as a plan may give them."""

    def words(self, name: str, value: object) -> tuple[str, ...]:
        """What an option is on the command line.

        Raises:
            Unexpected: there is no such option, or it does not take the value.
        """


@dataclass(frozen=True)
class Trial:
    """A trial: networks, how they score, and how the system is tuned.

    Attributes:
        name: unique in the plan, and a part of file names.
        train: options of moses-rnn-train for each network.
        score: options of moses-rnn-score.
        networks: their seeds; several are combined.
        combine: one of COMBINATIONS.
        inverse: whether there are as many networks of the other direction.
        tuner: one of TUNERS.
        seeds: of the tunings.
        own: settings in which it differs from [every], by key, for tables.
    """

    name: str
    train: tuple[str, ...]
    score: tuple[str, ...]
    networks: tuple[int, ...]
    combine: str
    inverse: bool
    tuner: str
    seeds: tuple[int, ...]
    own: Mapping[str, object]


@dataclass(frozen=True)
class Plan:
    """A plan that was read and checked; `pipeline` holds variables of OF_TABLE, OF_TUNING and OF_PLACE."""

    work: Path
    pipeline: Mapping[str, str]
    trials: tuple[Trial, ...]

    @property
    def tests(self) -> tuple[str, ...]:
        """The test sets, as the pipeline calls them."""
        prefixes = self.pipeline["TEST"].split()
        return tuple(Path(prefix).name for prefix in prefixes) if len(prefixes) > 1 else ("test",)


def read_plan(path: Path, options: Mapping[str, Options]) -> Plan:
    """Read and check a plan.

    Args:
        path: of the TOML file.
        options: of the commands that train and score, by the keys "train" and "score".

    Raises:
        InputError: there is no such file.
        FormatError: it is not TOML, or not a plan; the line, the key, what was expected and what is there are named.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise InputError(f"{path}: expected a plan, found: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise FormatError(str(path), None, "UTF-8", str(error)) from error
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"line (\d+)", str(error))
        raise FormatError(str(path), int(at[1]) if at else None, "TOML", str(error)) from error
    return _PlanReader(str(path), text, options).plan(content, path)


class _PlanReader:
    """Makes a plan of tables.

    Args:
        name: of the file.
        text: of the file, in which the line of an error is looked for.
        options: see `read_plan`.
    """

    def __init__(self, name: str, text: str, options: Mapping[str, Options]) -> None:
        self._name, self._options = name, options
        self._lines = text.split("\n")

    def plan(self, content: Table, path: Path) -> Plan:
        checks = {
            "work": check_text,
            "seeds": check_seeds,
            "pipeline": check_table,
            "every": check_table,
            "trial": check_tables,
        }
        content = {"work": path.stem, **content}
        given: dict[str, Any] = {"seeds": (1, 2, 3), "pipeline": {}, "every": {}, "trial": []}
        given |= self._checked(content, checks)
        if not given["trial"]:
            raise FormatError(self._name, None, "at least one [[trial]]", "none")
        pipeline = self._pipeline(given["pipeline"])
        every = {"seeds": given["seeds"], **self._settings(given["every"], "every")}
        trials = [
            trial for number, table in enumerate(given["trial"], 1) for trial in self._trials(table, number, every)
        ]
        self._check_names(trials)
        return Plan(Path(given["work"]), pipeline, tuple(trials))

    def _pipeline(self, table: Table) -> dict[str, str]:
        values = self._checked(table, VARIABLES, "pipeline")
        alternatives = ("PHRASE_TABLE", "BASELINE_INI") if {"PHRASE_TABLE", "BASELINE_INI"} & {*values} else ("TRAIN",)
        for name in (*NEEDED, *alternatives):
            if not values.get(name):
                raise FormatError(self._name, self._line("pipeline"), f"in [pipeline] {name}", "none")
        return values

    def _settings(self, table: Table, section: str, number: int = 0) -> dict[str, Any]:
        """Settings of a trial, or of every one, checked; options as they were given."""
        settings = self._checked(table, SETTINGS, section, number)
        for command, options in self._options.items():
            for option, value in settings.get(command, {}).items():
                self._words(options, f"{command}.{option}", value, (section, number))
        return settings

    def _words(self, options: Options, key: str, value: object, place: tuple[str, int]) -> tuple[str, ...]:
        try:
            return options.words(key.partition(".")[2], value)
        except Unexpected as error:
            self._refuse(error, key, *place)

    def _trials(self, table: Table, number: int, every: Table) -> Iterator[Trial]:
        """A trial, or all that its grid makes of it."""
        place = ("trial", number)
        if "name" not in table:
            raise FormatError(self._name, self._line(*place), f"in [[trial]] {number} a name", "none")
        own = dict(table)
        name = self._checked({"name": own.pop("name")}, {"name": check_name}, *place)["name"]
        grid = self._checked({"grid": own.pop("grid", {})}, {"grid": check_table}, *place)["grid"]
        for combined in itertools.product(*self._axes(grid, place)):
            settings = _merged(own, *(_nested(key, value) for key, value in combined))
            suffix = "".join(f"-{_label(key, value)}" for key, value in combined)
            yield self._trial(name + suffix, self._settings(settings, *place), every)

    def _axes(self, grid: Table, place: tuple[str, int]) -> list[list[tuple[str, object]]]:
        """Of each setting that a grid varies, its key with every value."""
        axes = []
        for key, values in _flat(grid).items():
            if not isinstance(values, list) or not values:
                self._refuse(Unexpected("a list of values", shown_value(values)), f"grid.{key}", *place)
            axes.append([(key, value) for value in values])
        return axes

    def _trial(self, name: str, settings: Table, every: Table) -> Trial:
        whole = _merged(every, settings)
        words = {
            command: tuple(
                word for name, value in sorted(whole.get(command, {}).items()) for word in options.words(name, value)
            )
            for command, options in self._options.items()
        }
        return Trial(
            name=name,
            train=words["train"],
            score=words["score"],
            networks=whole.get("networks", (1,)),
            combine=whole.get("combine", COMBINATIONS[0]),
            inverse=whole.get("inverse", False),
            tuner=whole.get("tuner", TUNERS[0]),
            seeds=whole["seeds"],
            own=_flat(settings),
        )

    def _check_names(self, trials: list[Trial]) -> None:
        names = [trial.name for trial in trials]
        for name in names:
            if names.count(name) > 1:
                raise FormatError(self._name, None, "trials of different names", f"{names.count(name)} named {name}")

    def _checked(
        self, table: Table, checks: Mapping[str, Callable[[Any], Any]], section: str = "", number: int = 0
    ) -> dict[str, Any]:
        """The values of a table, each as its check gives it back."""
        checked = {}
        for key, value in table.items():
            if key not in checks:
                place = self._line(section, number, key)
                raise FormatError(self._name, place, f"{_head(section, number)}one of {', '.join(checks)}", key)
            try:
                checked[key] = checks[key](value)
            except Unexpected as error:
                self._refuse(error, key, section, number)
        return checked

    def _refuse(self, error: Unexpected, key: str, section: str, number: int) -> NoReturn:
        expected = f"{_head(section, number)}{key} to be {error.expected}"
        raise FormatError(self._name, self._line(section, number, key), expected, error.found) from error

    def _line(self, section: str, number: int = 0, key: str = "") -> int | None:
        """Where a key stands, or else the head of its table; None: it is not known."""
        head = re.compile(rf"\s*\[\[?\s*{re.escape(section)}\s*\]" if section else "")
        heads = [i for i, line in enumerate(self._lines) if head.match(line)]
        if not heads[number - 1 if number else 0 :]:
            return None
        first = heads[number - 1 if number else 0]
        named = re.compile(rf"(^|[\s.{{,\"']){re.escape(key.rpartition('.')[2])}[\"']?\s*[=.]")
        after = range(first + bool(section), len(self._lines))
        within = itertools.takewhile(lambda i: not re.match(r"\s*\[(\[|pipeline|every)", self._lines[i]), after)
        line = next((i + 1 for i in within if key and named.search(self._lines[i])), None)
        return line or (first + 1 if section else None)


def _head(section: str, number: int) -> str:
    """What a message says of a table."""
    return f"in [[{section}]] {number} " if number else f"in [{section}] " * bool(section)


def _merged(*tables: Table) -> dict[str, Any]:
    """Later tables win; the options of a command are merged one by one."""
    merged: dict[str, Any] = {}
    for table in tables:
        for key, value in table.items():
            both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
            merged[key] = {**merged[key], **value} if both else value
    return merged


def _flat(settings: Table) -> dict[str, Any]:
    """Options by keys as train.dropout."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        flat |= {f"{key}.{option}": of for option, of in value.items()} if isinstance(value, Mapping) else {key: value}
    return flat


def _nested(key: str, value: object) -> dict[str, Any]:
    command, _, option = key.partition(".")
    return {command: {option: value}} if option else {key: value}


def _label(key: str, value: object) -> str:
    """A value, as a part of a name."""
    name = key.rpartition(".")[2]
    if isinstance(value, bool):
        return name if value else f"no-{name}"
    text = "+".join(map(str, value)) if isinstance(value, list) else str(value)
    return re.sub(r"[^A-Za-z0-9.+-]+", "-", text)
