"""Edit a moses.ini so that it loads a scored table.

An edit changes a dictionary's number of scores, path, type and weights; no other byte differs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from moses_rnn.errors import InputError, number_of
from moses_rnn.files.streams import STANDARD_STREAM, find_input
from moses_rnn.moses.dictionaries import BINARY, LOADABLE, TEXT_TYPES
from moses_rnn.moses.ini import Feature, MosesIni, begins_a_name, code_of, factor_list, is_readable_path
from moses_rnn.options import Argument, Option
from moses_rnn.table.phrase_table import FLOAT32_LIMIT, Shape, read_first_line
from moses_rnn.table.signatures import own_columns, read_signature, signature_of

READABLE = "a path that Moses can read (no blanks, no '#')"
UNREADABLE = "Move it to a folder without them, or keep paths relative: moses-rnn ini without --absolute-paths."
DEFAULT_WEIGHT = 0.2  # train-model.perl's weight of each phrase-table score
SOMEWHERE = "/path/of/the/scored/table"
OTHER_TABLE = "Is this the ini of another table?"
EXTENDED_ALREADY = "Is it already extended? Then it loads a scored table: give the ini for the original table."


@dataclass(frozen=True, kw_only=True)
class IniEdit:
    """The edit of an ini: load a scored table, make paths absolute, or both."""

    ini: Annotated[str, Argument("MOSES_INI")]
    table: Annotated[
        str | None, Option("The scored text table, even if the dictionary is a binary one made from it")
    ] = None
    feature: Annotated[
        str | None, Option("Phrase dictionary to change, if there are several: its name, or the table that it loads")
    ] = None
    type: Annotated[str | None, Option("New type of the dictionary, such as ProbingPT [default: unchanged]")] = None
    path: Annotated[str | None, Option("New path= [default: the table, or its name with the type's suffix]")] = None
    weights: Annotated[
        tuple[float, ...],
        Option(
            "Starting weight of all new columns; repeat it for one each [default: mean absolute weight of the others]",
            "--weight",
        ),
    ] = ()
    absolute_paths: Annotated[bool, Option("Make all paths absolute, as mert-moses.pl needs them")] = False


@dataclass(frozen=True)
class NewIni:
    """A new ini's content and its ``[feature]`` and ``[weight]`` lines for the table, or only these lines.

    `command` makes the dictionary if its type is made from a text table.
    """

    content: bytes = b""
    lines: tuple[str, str] = ("", "")
    warnings: tuple[str, ...] = ()
    command: str | None = None


def edit_ini(edit: IniEdit) -> NewIni:
    """Edit an ini for an existing table."""
    if edit.path and edit.absolute_paths:
        edit = replace(edit, path=str(Path(edit.path).absolute()))
    ini = MosesIni(Path(edit.ini).read_bytes(), edit.ini)
    if edit.table is None:
        lines, warnings = _place_paths(ini, absolute=edit.absolute_paths)
        return NewIni(_encode(lines), warnings=warnings)
    feature = ini.choose(name=edit.feature, table=edit.table)
    signature = signature_of(edit.table)
    first, form = read_first_line(edit.table)
    shape, declared = Shape.of(first), ini.declared(feature)
    added = shape.columns - declared
    if added < 0:
        found = f"at most {number_of(shape.columns, 'score')}, as {edit.table} has", f"num-features={declared}"
        raise ini.error(feature.line, *found, "Give the ini for the table before scoring.")
    kind = edit.type or feature.type
    if kind not in LOADABLE:
        place = f"--type {kind}" if edit.type else f"{ini.name}:{feature.line + 1}: {kind}"
        types = ", ".join(sorted(LOADABLE))
        raise InputError(
            f"{place}: expected a type for a text table, or one made from it: {types}",
            advice="Name one of them with --type.",
        )
    binary = BINARY.get(kind)
    if binary and form.hierarchical and not binary.holds_rules:
        raise InputError(f"{kind}: expected a type that holds hierarchical rules, found one for phrases")
    made = binary.path_for(edit.table) if binary else edit.table
    before = _table_before(ini, feature, edit.table)
    own = own_columns(declared, signature.columns)
    new = _extend(ini, feature, replace(edit, table=made, type=kind), declared, added, before)
    warning = f"{edit.table} has as many scores as {feature.name} had: only its path changes"
    return replace(
        new,
        warnings=new.warnings if added else (warning, *new.warnings),
        command=binary.command_for(edit.table, shape, edit.path or made, own) if binary else None,
    )


def extend_ini(edit: IniEdit, before: str, columns: int, added: int) -> NewIni:
    """Edit an ini for a future table, made from the table `before`, which the ini loads.

    The new table has `added` scores besides the `columns` of the old one.
    """
    ini = MosesIni(Path(edit.ini).read_bytes(), edit.ini)
    feature = ini.choose(name=edit.feature, table=before)
    if feature.type not in TEXT_TYPES:
        advice = (
            "Score the original text table without --moses-ini. Then moses-rnn ini makes the ini and prints how to "
            "binarise the result."
        )
        raise ini.error(feature.line, f"a text table ({', '.join(sorted(TEXT_TYPES))})", feature.type, advice)
    if (declared := ini.declared(feature)) != columns:
        advice = EXTENDED_ALREADY if declared > columns else OTHER_TABLE
        expected = f"num-features={columns}, the table's number of scores"
        raise ini.error(feature.line, expected, f"num-features={declared}", advice)
    return _extend(ini, feature, edit, columns, added, before)


def ini_of(table: str, before: str, shape: Shape, added: int, edited: str | None) -> NewIni:
    """Return the ini of a future table, made from the table `before`, or the lines that an ini needs.

    `edited` is the path of the ini that loads `before`, if any; `shape` is that of `before`.
    """
    if not edited:
        return lines_of(table, shape.columns + added, shape.factors)
    edit = IniEdit(ini=find_input(edited), table=table, absolute_paths=True)
    return extend_ini(edit, before, shape.columns, added)


def lines_of(table: str, columns: int, factors: tuple[int, int] = (1, 1)) -> NewIni:
    """Return the lines that an ini needs to load a table, as train-model.perl writes them."""
    path = SOMEWHERE if table == STANDARD_STREAM else str(Path(table).absolute())
    source, target = map(factor_list, factors)
    feature = f"PhraseDictionaryMemory name=TranslationModel0 num-features={columns} path={path}"
    lines = (
        f"{feature} input-factor={source} output-factor={target}",
        " ".join(["TranslationModel0=", *[f"{DEFAULT_WEIGHT:g}"] * columns]),
    )
    warning = f"{path}: Moses cannot read paths with blanks or '#': move the table before using it"
    return NewIni(lines=lines, warnings=() if is_readable_path(path) else (warning,))


def _extend(ini: MosesIni, feature: Feature, edit: IniEdit, columns: int, added: int, before: str | None) -> NewIni:
    """Add columns to one phrase dictionary of the ini; `before` is the table without them, if known."""
    kind, path, new_weights = edit.type or feature.type, _path_of(ini, feature, edit), _spread(edit.weights, added)
    if kind != feature.type:
        _check_name(ini, feature)
    ini.check_not_overridden(feature)
    if added:
        ini.check_alone(feature)
        ini.check_not_read(feature)
    tuneable = feature.options.get("tuneable-components", "")
    if tuneable and len(list(filter(None, tuneable.split(",")))) != columns:
        raise ini.error(feature.line, f"{number_of(columns, 'tuneable-component')}, one for each score", tuneable)
    lines = list(ini.lines)
    code, comment = _split(lines[feature.line])
    if kind != feature.type:  # keep the old default name, which the weights use
        code = code.replace(feature.type, kind, 1) + ("" if "name" in feature.options else f" name={feature.name}")
    values = {"num-features": str(columns + added), "path": path, "tuneable-components": tuneable + ",1" * added}
    edited = re.sub(r"(?<=[ \t])([^ \t=]+)=([^ \t]*)", lambda found: f"{found[1]}={values.get(*found.groups())}", code)
    lines[feature.line] = edited + comment
    places = ini.weight_lines(feature, columns)
    for index, weights in places:
        code, comment = _split(lines[index])
        mean = sum(map(abs, weights)) / max(len(weights), 1) or DEFAULT_WEIGHT
        more = (mean,) * added if new_weights is None else new_weights
        lines[index] = " ".join([code, *(f"{weight:.6g}" for weight in more)]) + comment
    lines, warnings = _place_paths(MosesIni(_encode(lines), ini.name), absolute=edit.absolute_paths)
    about_table = code_of(lines[feature.line]), code_of(lines[places[0][0]])
    return NewIni(_encode(lines), about_table, (*_warnings(ini, feature, added, before), *warnings))


def _spread(weights: tuple[float, ...], added: int) -> tuple[float, ...] | None:
    """Return a weight for each added column; None if the user gave none."""
    if len(weights) not in (0, 1, added):
        raise InputError(f"--weight: expected 1 for all new scores, or {added}, one for each, found {len(weights)}")
    if too_large := [weight for weight in weights if not abs(weight) < FLOAT32_LIMIT]:
        raise InputError(
            f"--weight: expected numbers within the range of float32, which Moses uses, found {too_large[0]:g}"
        )
    return (weights * added)[:added] if weights else None


def _path_of(ini: MosesIni, feature: Feature, edit: IniEdit) -> str:
    """Return the new ``path=``: by default the table's path, relative if the old one is and the folder is the same."""
    if "path" not in feature.options:
        raise ini.error(feature.line, "a path= setting", "none")
    written, table = Path(feature.options["path"]), Path(edit.table or "").absolute()
    stays = not edit.absolute_paths and not written.is_absolute()
    if stays and any(place.parent.samefile(table.parent) for place in ini.places(feature, "", ".gz")):
        table = written.with_name(table.name)
    path = edit.path or str(table)
    if not is_readable_path(path):
        raise ini.error(feature.line, READABLE, repr(path), UNREADABLE)
    return path


def _check_name(ini: MosesIni, feature: Feature) -> None:
    """Raise an error if a dictionary's type changes although others are numbered after it."""
    for other in ini.phrase_dictionaries:
        if other.type == feature.type and "name" not in feature.options | other.options and other.line > feature.line:
            advice = (
                "Moses would number it differently if the type of the one above changed. Give both a name=, and use "
                "these names for their weights."
            )
            raise ini.error(other.line, f"no further {feature.type} without a name=", other.name, advice)


def _warnings(ini: MosesIni, feature: Feature, added: int, before: str | None) -> list[str]:
    place, warnings = f"{ini.name}:{feature.line + 1}: {feature.name} has", []
    if before is not None and not ini.is_path_of(feature, before):
        path = f"path={feature.options['path']}"
        warnings.append(f"{place} {path}, which is not the scored table {before}: is this the right ini?")
    if added and feature.name in ini.untuneable():
        warnings.append(f"{place} tuneable={feature.options['tuneable']}: MERT will leave the new weight as it is")
    return warnings


def _table_before(ini: MosesIni, feature: Feature, table: str) -> str | None:
    """Return the table that a feature loads, if `table` was made from it, or else the first that it was made from.

    Signatures name the table's predecessor, which is looked for beside it; None if it is unknown.
    """
    tables: list[str] = []
    while feature.type in TEXT_TYPES and (signature := read_signature(tables[-1] if tables else table)):
        before = str(Path(table).parent / Path(str(signature.record.get("input"))).name)
        if before in (str(Path(table)), *tables) or not Path(before).is_file():
            break
        tables.append(before)
    return next((before for before in tables if ini.is_path_of(feature, before)), tables[-1] if tables else None)


def _place_paths(ini: MosesIni, *, absolute: bool) -> tuple[list[str], tuple[str, ...]]:
    """Return the lines of an ini, with absolute paths if asked for, and warnings about paths."""
    lines, paths = list(ini.lines), ini.relative_paths
    if not absolute:
        relative = ", ".join(path.text for path in paths)
        warning = f"relative paths ({relative}): run Moses in their folder; mert-moses.pl needs absolute ones"
        return lines, (warning,) if relative else ()
    for path in reversed(paths):
        if not is_readable_path(str(path.folder)):
            raise ini.error(path.line, READABLE, repr(f"{path.folder}/{path.text}"), UNREADABLE)
        line = lines[path.line]
        lines[path.line] = f"{line[: path.column]}{path.folder}/{line[path.column :]}"
    nowhere = ", ".join(path.text for path in paths if not begins_a_name(path.folder / path.text))
    warning = f"{ini.name}: paths not found ({nowhere}): they were resolved against the ini's folder"
    return lines, (warning,) if nowhere else ()


def _split(line: str) -> tuple[str, str]:
    """Split a line into its words, and its comment with the blanks before it."""
    code = line.partition("#")[0].rstrip(" \t\r")  # a CR inside a word is part of it
    return code, line[len(code) :]


def _encode(lines: list[str]) -> bytes:
    """Encode the lines as a file; bytes that were not UTF-8 stay unchanged."""
    return "\n".join(lines).encode("utf-8", "surrogateescape")
