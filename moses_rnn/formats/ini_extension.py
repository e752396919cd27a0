"""More columns in a phrase dictionary of a moses.ini: its number of scores, path and weights; no other byte differs."""

from __future__ import annotations

from dataclasses import dataclass

from moses_rnn.formats.dictionaries import TEXT_TYPES, factor_list
from moses_rnn.formats.ini_lines import (
    encode_lines,
    format_weights,
    is_readable_path,
    with_options,
    with_type,
    with_weights,
)
from moses_rnn.formats.moses_ini import DEFAULT_WEIGHT, READABLE, UNREADABLE, Feature, MosesIni

NO = frozenset({"no", "n", "false", "0"})  # as Moses reads it, in any case
OTHER_TABLE = "Is this the ini of another table?"
EXTENDED_ALREADY = "Has it been extended already? Then it loads a scored table: give the ini that the table had before."


@dataclass(frozen=True)
class Extension:
    """What is added to a phrase dictionary: the table that has the new columns, and their starting weights.

    `table` is the new path; `old_columns` is how many scores the old table has; `weights` are the starting weights of
    the added columns, or None for the mean absolute weight of the old ones. `type` is what the dictionary becomes; None
    leaves a text table one, and refuses any other. `before` is the table without the new columns, where it is known;
    `absolute` makes all paths of the ini so.
    """

    table: str
    old_columns: int
    added_columns: int
    weights: tuple[float, ...] | None = None
    type: str | None = None
    before: str | None = None
    absolute: bool = False


def extend_ini(ini: MosesIni, feature: Feature, extension: Extension) -> tuple[bytes, tuple[str, ...]]:
    """The ini with more columns in one phrase dictionary, and what a user should know of it.

    Raises:
        FormatError: the dictionary is not a text table, or its numbers contradict each other or the table.
    """
    _check_type(ini, feature, extension)
    _check_number(ini, feature, extension)
    _check_path(ini, feature, extension)
    ini.check_not_overridden(feature)
    if extension.added_columns:
        ini.check_alone(feature)
    lines = list(ini.lines)
    total = extension.old_columns + extension.added_columns
    lines[feature.line] = with_options(
        _retype(lines[feature.line], feature, extension.type or feature.type),
        {
            "num-features": lambda _: str(total),
            "path": lambda _: extension.table,
            "tuneable-components": lambda old: old + ",1" * extension.added_columns,
        },
    )
    for index, old_weights in ini.weight_lines(feature, extension.old_columns):
        lines[index] = with_weights(lines[index], choose_weights(extension, old_weights))
    content, warnings = place_paths(ini, encode_lines(lines), absolute=extension.absolute)
    return content, (*_warnings(ini, feature, extension), *warnings)


def place_paths(ini: MosesIni, content: bytes, *, absolute: bool) -> tuple[bytes, tuple[str, ...]]:
    """What an ini has become with its paths made absolute or left, and what a user should know of them.

    Raises:
        FormatError: Moses could not read a path then.
    """
    new = MosesIni(content, ini.name)
    certain = [path for path in new.relative_paths if path.folder]
    if not absolute:
        relative = ", ".join(path.text for path in certain)
        warning = f"relative paths ({relative}): run Moses in their folder; mert-moses.pl needs absolute ones"
        return content, (warning,) if relative else ()
    doubtful = (path for path in new.relative_paths if not path.folder)
    warnings = [f"{ini.name}:{p.line + 1}: {p.text} looks like a path, and is left as it is" for p in doubtful]
    if nowhere := ", ".join(path.text for path in certain if not path.leads_somewhere):
        warnings.append(f"{ini.name}: paths not found ({nowhere}): they are resolved against the ini's folder")
    return new.with_absolute_paths(), tuple(warnings)


def _warnings(ini: MosesIni, feature: Feature, extension: Extension) -> list[str]:
    place, warnings = f"{ini.name}:{feature.line + 1}: {feature.name} has", []
    if extension.before is not None and not ini.is_path_of(feature, extension.before):
        path = f"path={feature.options['path']}"
        warnings.append(f"{place} {path}, which is not the scored table {extension.before}: is this the right ini?")
    tuneable = feature.options.get("tuneable", "")
    if extension.added_columns and tuneable.lower() in NO:
        warnings.append(f"{place} tuneable={tuneable}: MERT will leave the new weight as it is")
    return warnings


def _check_type(ini: MosesIni, feature: Feature, extension: Extension) -> None:
    later = [
        other
        for other in ini.phrase_dictionaries
        if other.type == feature.type and "name" not in other.options and other.line > feature.line
    ]
    if extension.type not in (None, feature.type) and "name" not in feature.options and later:
        advice = (
            "Moses would number it differently if the type of the one above changed. Give both a name=, and their "
            "weights."
        )
        raise ini.error(later[0].line, f"no further {feature.type} without a name=", later[0].name, advice)
    if extension.type is None and feature.type not in TEXT_TYPES:
        raise ini.error(
            feature.line,
            f"a text table ({', '.join(sorted(TEXT_TYPES))})",
            feature.type,
            "Score the text table it was made from without --moses-ini; moses-rnn ini then makes the ini and says "
            "how to binarise the result.",
        )


def _check_number(ini: MosesIni, feature: Feature, extension: Extension) -> None:
    declared = feature.options.get("num-features", "")
    if declared != str(extension.old_columns):
        raise ini.error(
            feature.line,
            f"num-features={extension.old_columns} as the table's scores",
            f"num-features={declared}" if declared else "no num-features",
            EXTENDED_ALREADY if declared.isdigit() and int(declared) > extension.old_columns else OTHER_TABLE,
        )
    tuneable = feature.options.get("tuneable-components", "")
    if tuneable and len(list(filter(None, tuneable.split(",")))) != extension.old_columns:
        raise ini.error(feature.line, f"{extension.old_columns} tuneable-components, one for each score", tuneable)


def _check_path(ini: MosesIni, feature: Feature, extension: Extension) -> None:
    if "path" not in feature.options:
        raise ini.error(feature.line, "a path= setting", "none")
    if not is_readable_path(extension.table):
        raise ini.error(feature.line, READABLE, repr(extension.table), UNREADABLE)


def choose_weights(extension: Extension, old_weights: list[float]) -> list[float]:
    """Weights of the added columns before tuning: as given, else as large as the table's others on average."""
    if extension.weights is not None:
        return list(extension.weights)
    mean = sum(abs(weight) for weight in old_weights) / max(len(old_weights), 1)
    return [mean or DEFAULT_WEIGHT] * extension.added_columns


def _retype(line: str, feature: Feature, kind: str) -> str:
    """A feature line for another type; what was named after its type keeps the name that its weights have."""
    if kind == feature.type:
        return line
    return with_type(line, feature.type, kind, "" if "name" in feature.options else f" name={feature.name}")


def default_lines(table: str, columns: int, factors: tuple[int, int] = (1, 1)) -> tuple[str, str]:
    """``[feature]`` and ``[weight]`` lines as train-model.perl writes them, for a table with so many columns."""
    source, target = map(factor_list, factors)
    feature = f"PhraseDictionaryMemory name=TranslationModel0 num-features={columns} path={table}"
    return (
        f"{feature} input-factor={source} output-factor={target}",
        f"TranslationModel0= {format_weights([DEFAULT_WEIGHT] * columns)}",
    )
