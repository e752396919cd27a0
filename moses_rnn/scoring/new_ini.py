"""The ini of a scored table, made from that of the table it was."""

from __future__ import annotations

from pathlib import Path

from moses_rnn.files.streams import STANDARD_STREAM
from moses_rnn.formats.dictionaries import Shape
from moses_rnn.formats.ini_lines import is_readable_path
from moses_rnn.formats.moses_ini import Extension, MosesIni, default_lines
from moses_rnn.scoring.request import IniRequest, ScoringRequest

SOMEWHERE = "/path/of/the/scored/table"


class NewIni:
    """The new ini's content, or without one the lines that it would need.

    Args:
        request: all choices of the run.
        old: what the table has, its scores among it.
        added: scores that are added.

    Raises:
        InputError: the ini is none, or does not fit the table.
    """

    def __init__(self, request: ScoringRequest, old: Shape, added: int) -> None:
        self.content = b""
        self.warnings: list[str] = []
        if request.ini:
            self._extend(request, request.ini, old.columns, added)
        else:
            self._lines_only(request, old.columns + added, old.factors)

    def _lines_only(self, request: ScoringRequest, columns: int, factors: tuple[int, int]) -> None:
        path = SOMEWHERE if request.output == STANDARD_STREAM else str(Path(request.output).absolute())
        self.lines = default_lines(path, columns, factors)
        if not is_readable_path(path):
            self.warnings.append(f"{path}: Moses cannot read paths with blanks or '#': move the table before using it")

    def _extend(self, request: ScoringRequest, wanted: IniRequest, old_columns: int, added: int) -> None:
        ini = MosesIni(Path(wanted.ini).read_bytes(), wanted.ini)
        feature = ini.choose(name=wanted.feature, table=request.table)
        weights = None if wanted.weight is None else (wanted.weight,) * added
        path = ini.path_like(feature, Path(request.output))
        self.content = ini.extended(feature, Extension(path, old_columns, added, weights))
        new = MosesIni(self.content, wanted.output)
        self.lines = new.lines_of(feature.name)
        self.warnings += ini.warnings(feature, request.table)
        if relative := new.relative_paths():
            self.warnings.append(
                f"the new ini has relative paths ({', '.join(relative)}), as the old one: run Moses in that folder, "
                "and make them absolute for mert-moses.pl"
            )
