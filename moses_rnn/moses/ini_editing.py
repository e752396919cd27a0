"""A moses.ini changed to load a scored table: its number of scores, path, type and weights; no other byte differs."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from moses_rnn.errors import InputError
from moses_rnn.files.streams import STANDARD_STREAM
from moses_rnn.moses.dictionaries import BINARY, LOADABLE, TEXT_TYPES
from moses_rnn.moses.ini import READABLE, UNREADABLE, Feature, MosesIni, begins_a_name, code_of
from moses_rnn.table.phrase_table import Shape, read_first_line
from moses_rnn.table.signatures import read_signature

DEFAULT_WEIGHT = 0.2  # what train-model.perl gives each phrase-table score
NO = frozenset({"no", "n", "false", "0"})  # as Moses reads it, in any case
SOMEWHERE = "/path/of/the/scored/table"
OTHER_TABLE = "Is this the ini of another table?"
EXTENDED_ALREADY = "Has it been extended already? Then it loads a scored table: give the ini that the table had before."


@dataclass(frozen=True)
class IniEdit:
    """How the ini becomes the one at `output`: by a scored table, with absolute paths, or both.

    `feature` names the phrase dictionary if several could be meant. `type` and `path` are what it gets, by default its
    own type and the table's place. `weights` are those that the new columns start with, one for all or one for each; by
    default they are as large as the others are on average.
    """

    ini: str
    output: str
    table: str | None = None
    feature: str | None = None
    type: str | None = None
    path: str | None = None
    weights: tuple[float, ...] = ()
    absolute_paths: bool = False


@dataclass(frozen=True)
class NewIni:
    """A new ini's content, and its lines of ``[feature]`` and ``[weight]`` about the table; or these lines alone.

    `command` makes the dictionary of a type that is made from a text table.
    """

    content: bytes = b""
    lines: tuple[str, str] = ("", "")
    warnings: tuple[str, ...] = ()
    command: str | None = None


def edit_ini(edit: IniEdit) -> NewIni:
    """Make the changes, for a table that is there."""
    ini = MosesIni(Path(edit.ini).read_bytes(), edit.ini)
    if edit.table is None:
        lines, warnings = _place_paths(ini, absolute=edit.absolute_paths)
        return NewIni(_encode(lines), warnings=warnings)
    feature = ini.choose(name=edit.feature, table=edit.table)
    first, _ = read_first_line(edit.table)
    shape, declared = Shape.of(first), ini.declared(feature)
    added = shape.columns - declared
    if added < 0:
        found = f"at most {shape.columns} scores, as {edit.table} has", f"num-features={declared}"
        raise ini.error(feature.line, *found, "Give the ini that the table had before it was scored.")
    kind = edit.type or feature.type
    if kind not in LOADABLE:
        place = f"--type {kind}" if edit.type else f"{ini.name}:{feature.line + 1}: {kind}"
        types = ", ".join(sorted(LOADABLE))
        raise InputError(
            f"{place}: expected a type that a text table is, or is made into: {types}",
            advice="--type names one of them.",
        )
    binary = BINARY.get(kind)
    made = binary.path_for(edit.table) if binary else edit.table
    before = _table_before(ini, feature, edit.table)
    new = _extend(ini, feature, replace(edit, table=made, type=kind), declared, added, before)
    warning = f"{edit.table} has as many scores as {feature.name} had: only its path changes"
    return replace(
        new,
        warnings=new.warnings if added else (warning, *new.warnings),
        command=binary.command_for(edit.table, shape, edit.path or made) if binary else None,
    )


def extend_ini(edit: IniEdit, before: str, columns: int, added: int) -> NewIni:
    """Make the changes, for a table that is yet to be made from the table `before`, which the ini loads.

    It has `added` scores besides the `columns` of that one.
    """
    ini = MosesIni(Path(edit.ini).read_bytes(), edit.ini)
    feature = ini.choose(name=edit.feature, table=before)
    if feature.type not in TEXT_TYPES:
        advice = (
            "Score the text table it was made from without --moses-ini; moses-rnn ini then makes the ini and says how "
            "to binarise the result."
        )
        raise ini.error(feature.line, f"a text table ({', '.join(sorted(TEXT_TYPES))})", feature.type, advice)
    if (declared := ini.declared(feature)) != columns:
        advice = EXTENDED_ALREADY if declared > columns else OTHER_TABLE
        expected = f"num-features={columns} as the table's scores"
        raise ini.error(feature.line, expected, f"num-features={declared}", advice)
    return _extend(ini, feature, edit, columns, added, before)


def lines_of(table: str, columns: int, factors: tuple[int, int] = (1, 1)) -> NewIni:
    """The lines that an ini needs to load a table, as train-model.perl writes them."""
    path = SOMEWHERE if table == STANDARD_STREAM else str(Path(table).absolute())
    source, target = map(factor_list, factors)
    feature = f"PhraseDictionaryMemory name=TranslationModel0 num-features={columns} path={path}"
    lines = (
        f"{feature} input-factor={source} output-factor={target}",
        " ".join(["TranslationModel0=", *[f"{DEFAULT_WEIGHT:g}"] * columns]),
    )
    warning = f"{path}: Moses cannot read paths with blanks or '#': move the table before using it"
    return NewIni(lines=lines, warnings=() if is_readable_path(path) else (warning,))


def factor_list(count: int) -> str:
    """``0,1`` for two factors, as an ini names them."""
    return ",".join(map(str, range(count)))


def is_readable_path(path: str) -> bool:
    """Whether Moses can read a path in an ini, where blanks part words and '#' begins a comment."""
    return re.search(r"[ \t\r\n#]", path) is None


def _extend(ini: MosesIni, feature: Feature, edit: IniEdit, columns: int, added: int, before: str | None) -> NewIni:
    """The ini with more columns in one phrase dictionary; `before` is the table without them, where it is known."""
    kind, path, new_weights = edit.type or feature.type, _path_of(ini, feature, edit), _spread(edit.weights, added)
    if kind != feature.type:
        _check_name(ini, feature)
    ini.check_not_overridden(feature)
    if added:
        ini.check_alone(feature)
    tuneable = feature.options.get("tuneable-components", "")
    if tuneable and len(list(filter(None, tuneable.split(",")))) != columns:
        raise ini.error(feature.line, f"{columns} tuneable-components, one for each score", tuneable)
    lines = list(ini.lines)
    code, comment = _split(lines[feature.line])
    if kind != feature.type:  # what was named after its type keeps the name that its weights have
        code = code.replace(feature.type, kind, 1) + ("" if "name" in feature.options else f" name={feature.name}")
    values = {
        "num-features": str(columns + added),
        "path": path,
        "tuneable-components": tuneable + ",1" * added,
    }
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
    """A weight for each added column; None if the user gave none."""
    if len(weights) not in (0, 1, added):
        raise InputError(f"--weight: expected one for all or {added}, one for each new score, found {len(weights)}")
    return (weights * added)[:added] if weights else None


def _path_of(ini: MosesIni, feature: Feature, edit: IniEdit) -> str:
    """What ``path=`` becomes: by default the table's place, relative if the old one is and lies in the same folder."""
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
    """Refuse another type for a dictionary by which others are numbered."""
    for other in ini.phrase_dictionaries:
        if other.type == feature.type and "name" not in feature.options | other.options and other.line > feature.line:
            advice = (
                "Moses would number it differently if the type of the one above changed. Give both a name=, and their "
                "weights."
            )
            raise ini.error(other.line, f"no further {feature.type} without a name=", other.name, advice)


def _warnings(ini: MosesIni, feature: Feature, added: int, before: str | None) -> list[str]:
    place, warnings = f"{ini.name}:{feature.line + 1}: {feature.name} has", []
    if before is not None and not ini.is_path_of(feature, before):
        path = f"path={feature.options['path']}"
        warnings.append(f"{place} {path}, which is not the scored table {before}: is this the right ini?")
    tuneable = feature.options.get("tuneable", "")
    if added and tuneable.lower() in NO:
        warnings.append(f"{place} tuneable={tuneable}: MERT will leave the new weight as it is")
    return warnings


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


def _place_paths(ini: MosesIni, *, absolute: bool) -> tuple[list[str], tuple[str, ...]]:
    """The lines of an ini with its paths made absolute or left, and what a user should know of them."""
    lines, paths = list(ini.lines), ini.relative_paths
    certain = [path for path in paths if path.folder]
    if not absolute:
        relative = ", ".join(path.text for path in certain)
        warning = f"relative paths ({relative}): run Moses in their folder; mert-moses.pl needs absolute ones"
        return lines, (warning,) if relative else ()
    for path in reversed(certain):
        if not is_readable_path(str(path.folder)):
            raise ini.error(path.line, READABLE, repr(f"{path.folder}/{path.text}"), UNREADABLE)
        line = lines[path.line]
        lines[path.line] = f"{line[: path.column]}{path.folder}/{line[path.column :]}"
    doubtful = (path for path in paths if not path.folder)
    warnings = [f"{ini.name}:{p.line + 1}: {p.text} looks like a path, and is left as it is" for p in doubtful]
    if nowhere := ", ".join(text for _, _, text, folder in paths if folder and not begins_a_name(folder / text)):
        warnings.append(f"{ini.name}: paths not found ({nowhere}): they are resolved against the ini's folder")
    return lines, tuple(warnings)


def _split(line: str) -> tuple[str, str]:
    """A line's words, and its comment with the blanks before it."""
    code = line.partition("#")[0].rstrip(" \t\r")  # a CR inside a word is part of it
    return code, line[len(code) :]


def _encode(lines: list[str]) -> bytes:
    """The lines as a file, every byte that was no UTF-8 as it came."""
    return "\n".join(lines).encode("utf-8", "surrogateescape")
