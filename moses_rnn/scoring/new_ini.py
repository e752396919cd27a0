"""The ini of a scored table, made from that of the table before."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from moses_rnn.files.streams import STANDARD_STREAM
from moses_rnn.formats.dictionaries import Shape
from moses_rnn.formats.ini_extension import Extension, default_lines, extend_ini
from moses_rnn.formats.ini_lines import is_readable_path
from moses_rnn.formats.moses_ini import MosesIni
from moses_rnn.scoring.request import IniRequest

SOMEWHERE = "/path/of/the/scored/table"


@dataclass(frozen=True)
class NewIni:
    """The new ini's content, or without one the lines that it would need: of [feature] and of [weight]."""

    lines: tuple[str, str]
    content: bytes = b""
    warnings: tuple[str, ...] = ()


def make_ini(table: str, output: str, wanted: IniRequest | None, old: Shape, added: int) -> NewIni:
    """The ini of the scored table.

    Args:
        table: that is scored.
        output: the scored table.
        wanted: the ini to extend; None: only its lines are.
        old: what the table has, its scores among it.
        added: scores that are added.

    Raises:
        InputError: the ini given is not a valid one, or does not fit the table.
    """
    if wanted:
        return _extended(table, output, wanted, old.columns, added)
    path = SOMEWHERE if output == STANDARD_STREAM else str(Path(output).absolute())
    lines = default_lines(path, old.columns + added, old.factors)
    if is_readable_path(path):
        return NewIni(lines)
    return NewIni(
        lines, warnings=(f"{path}: Moses cannot read paths with blanks or '#': move the table before using it",)
    )


def _extended(table: str, output: str, wanted: IniRequest, old_columns: int, added: int) -> NewIni:
    ini = MosesIni(Path(wanted.ini).read_bytes(), wanted.ini)
    feature = ini.choose(name=wanted.feature, table=table)
    weights = None if wanted.weight is None else (wanted.weight,) * added
    absolute = not wanted.relative_paths
    path = str(Path(output).absolute()) if absolute else ini.path_like(feature, Path(output))
    extension = Extension(path, old_columns, added, weights, before=table, absolute=absolute)
    content, warnings = extend_ini(ini, feature, extension)
    return NewIni(MosesIni(content, wanted.output).lines_of(feature.name), content, warnings)
