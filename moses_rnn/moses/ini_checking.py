"""Whether a table and an ini fit each other, without running Moses."""

from __future__ import annotations

from pathlib import Path

from moses_rnn.errors import InputError
from moses_rnn.files.streams import read_blocks
from moses_rnn.formats.dictionaries import TEXT_TYPES, Shape
from moses_rnn.formats.moses_ini import Feature, MosesIni
from moses_rnn.formats.phrase_table import first_look
from moses_rnn.formats.table_blocks import parse_blocks
from moses_rnn.moses.programs import Dictionary


def check_ini(table: str, ini_path: str, feature_name: str | None) -> tuple[list[str], Dictionary]:
    """Check that all lines of a table have as many scores as its ini says, and the ini as many weights.

    Returns:
        What holds, as lines of text, and the dictionary that the ini names.

    Raises:
        InputError: they have not, or the ini names no dictionary that is there.
    """
    ini = MosesIni(Path(ini_path).read_bytes(), ini_path)
    feature = ini.choose(name=feature_name, table=table)
    at = f"{ini_path}:{feature.line + 1}"
    declared = ini.declared(feature)
    first, form = first_look(table)
    shape = Shape.of(first)
    lines = sum(len(chunk) for chunk in parse_blocks(read_blocks(table), table, form=form))
    if declared != shape.columns:
        raise InputError(f"{at}: expected num-features={shape.columns}, as {table} has scores, found {declared}")
    (_, weights), *_ = ini.weight_lines(feature, declared)
    ini.check_not_overridden(feature)
    ini.check_alone(feature)
    place = _find_dictionary(ini, feature, table, at)
    summary = [
        f"{table}: {lines:,} lines with {shape.columns} scores",
        f"{at}: {feature.name} has num-features={declared} and {len(weights)} weights",
    ]
    if relative := ", ".join(path.text for path in ini.relative_paths if path.folder):
        summary.append(f"{ini_path}: relative paths ({relative}): run Moses in their folder")
    return summary, Dictionary(feature.type, place.absolute(), declared, "moses", shape.factors)


def _find_dictionary(ini: MosesIni, feature: Feature, table: str, at: str) -> Path:
    """Where the feature's dictionary is; a text table must be the one that is checked."""
    place = ini.place_of(feature)
    if place is None:
        raise InputError(f"{at}: expected a dictionary at path=, found nothing at {feature.options.get('path', '')}")
    if feature.type in TEXT_TYPES and not place.samefile(table):
        raise InputError(f"{at}: expected path={table}, found path={feature.options['path']}")
    return place
