"""An existing moses.ini changed to load a scored table, of whatever type of phrase dictionary."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

from moses_rnn.errors import InputError
from moses_rnn.formats.dictionaries import BINARY, LOADABLE, TEXT_TYPES, Shape, listed
from moses_rnn.formats.ini_extension import Extension, extend_ini, place_paths
from moses_rnn.formats.ini_lines import encode_lines
from moses_rnn.formats.moses_ini import Feature, MosesIni
from moses_rnn.formats.phrase_table import first_look
from moses_rnn.formats.signatures import read_signature


@dataclass(frozen=True)
class IniEdit:
    """What is to be changed; see the options of moses-rnn ini."""

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
    ini = MosesIni(old, edit.ini)
    if edit.table is not None:
        return _with_table(ini, edit, edit.table)
    content, warnings = place_paths(ini, old, absolute=edit.absolute_paths)
    return EditedIni(edit.ini, old, content, warnings)


def _with_table(ini: MosesIni, edit: IniEdit, table: str) -> EditedIni:
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
    path = edit.path or (str(Path(made).absolute()) if edit.absolute_paths else ini.path_like(feature, Path(made)))
    weights = _spread(edit.weights, added)
    before = _table_before(ini, feature, table)
    extension = Extension(path, declared, added, weights, kind, before, absolute=edit.absolute_paths)
    content, warnings = extend_ini(ini, feature, extension)
    if not added:
        warnings = (f"{table} has as many scores as {feature.name} had: only its path changes", *warnings)
    commands = (binary.command_for(table, shape, edit.path or made),) if binary else ()
    return EditedIni(ini.name, encode_lines(ini.lines), content, warnings, commands)


def _table_before(ini: MosesIni, feature: Feature, table: str) -> str | None:
    """The table that a feature loads, if a table was made from it, or else the first that it was made from.

    Signatures name what a table was made from, which is looked for beside it; None if that is not known.
    """
    tables: list[str] = []
    while feature.type in TEXT_TYPES and (signature := read_signature(tables[-1] if tables else table)):
        before = str(Path(table).parent / Path(str(signature.get("input"))).name)
        if before in tables or not Path(before).is_file():
            break
        tables.append(before)
    return next((before for before in tables if ini.is_path_of(feature, before)), tables[-1] if tables else None)


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
