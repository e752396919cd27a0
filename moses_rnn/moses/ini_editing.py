"""An existing moses.ini changed to load a scored table, of whatever type of phrase dictionary."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

from moses_rnn.errors import InputError
from moses_rnn.formats.dictionaries import BINARY, LOADABLE, Shape, listed
from moses_rnn.formats.ini_extension import Extension, extend_ini
from moses_rnn.formats.moses_ini import Feature, MosesIni
from moses_rnn.formats.phrase_table import first_look


@dataclass(frozen=True)
class IniEdit:
    """What is to be changed; see the options of moses-rnn-ini."""

    ini: str
    table: str | None = None
    feature: str | None = None
    type: str | None = None
    path: str | None = None
    weights: tuple[float, ...] = ()
    absolute_paths: bool = False


@dataclass(frozen=True)
class EditedIni:
    """The ini before and after, what the user should know, and what makes the dictionary that it now names."""

    name: str
    old: bytes
    content: bytes
    warnings: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()

    def diff(self, output: str) -> str:
        """What changed, as `diff -u` prints it."""
        before, after = (data.decode("utf-8", "surrogateescape").split("\n") for data in (self.old, self.content))
        return "\n".join(unified_diff(before, after, self.name, output, lineterm=""))


def edit_ini(edit: IniEdit) -> EditedIni:
    """Make the changes.

    Raises:
        InputError: the ini or the table is not valid, or they do not fit each other.
    """
    old = Path(edit.ini).read_bytes()
    content = old
    warnings: list[str] = []
    commands: list[str] = []
    if edit.table is not None:
        content, warnings, commands = _with_table(MosesIni(old, edit.ini), edit, edit.table)
    if edit.absolute_paths:
        content = MosesIni(content, edit.ini).with_absolute_paths()
    elif relative := MosesIni(content, edit.ini).relative_paths():
        warnings.append(f"relative paths ({', '.join(relative)}): run Moses in their folder, or give --absolute-paths")
    return EditedIni(edit.ini, old, content, tuple(warnings), tuple(commands))


def _with_table(ini: MosesIni, edit: IniEdit, table: str) -> tuple[bytes, list[str], list[str]]:
    feature = ini.choose(name=edit.feature, table=table)
    first, _ = first_look(table)
    shape, declared = Shape.of(first), ini.declared(feature)
    columns = shape.columns
    added = columns - declared
    if added < 0:
        raise InputError(
            f"{ini.name}:{feature.line + 1}: expected at most {columns} scores, as {table} has, found "
            f"num-features={declared}",
            advice="Give the ini that the table had before it was scored.",
        )
    kind = _choose_type(ini, feature, edit)
    binary = BINARY.get(kind)
    made = binary.path_for(table) if binary else table
    path = edit.path or ini.path_like(feature, Path(made))
    weights = _spread(edit.weights, added)
    content = extend_ini(ini, feature, Extension(path, declared, added, weights, kind))
    commands = [binary.command_for(table, shape, edit.path or made)] if binary else []
    warnings = [] if added else [f"{table} has as many scores as {feature.name} had: only its path changes"]
    return content, warnings, commands


def _choose_type(ini: MosesIni, feature: Feature, edit: IniEdit) -> str:
    """The type that the dictionary shall have."""
    kind = edit.type or feature.type
    if kind not in LOADABLE:
        place = f"--type {kind}" if edit.type else f"{ini.name}:{feature.line + 1}: {kind}"
        raise InputError(
            f"{place}: expected a type that a text table is, or is made into: {listed(LOADABLE)}",
            advice="--type names one of them.",
        )
    return kind


def _spread(weights: tuple[float, ...], added: int) -> tuple[float, ...] | None:
    """A weight for each added column; None if the user gave none."""
    if not weights:
        return None
    if len(weights) not in (1, added):
        raise InputError(f"--weight: expected one for all or {added}, one for each new score, found {len(weights)}")
    return weights * added if len(weights) == 1 else weights
