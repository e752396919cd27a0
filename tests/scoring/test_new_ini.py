"""The ini of a scored table: the old one with the new scores, or without one the lines that it would need."""

import pytest

from moses_rnn.formats.dictionaries import Shape
from moses_rnn.scoring.new_ini import SOMEWHERE, make_ini
from moses_rnn.scoring.request import IniRequest
from tests.scoring.tables import request_for

INI = """[feature]
PhraseDictionaryMemory name=TM num-features=2 path={table} input-factor=0 output-factor=0
Distortion
[weight]
TM= 0.2 0.4
Distortion0= 0.3
"""


@pytest.fixture
def request_with_ini(here, models):
    """A request with an ini of a table's path, and changes of the wish for a new one."""

    def with_ini(path, **changes):
        (here / "moses.ini").write_text(INI.format(table=path))
        ini = IniRequest(str(here / "moses.ini"), str(here / "new.ini"), **changes)
        return request_for(here, models, ini=ini)

    return with_ini


def ini_of(request, shape, added):
    return make_ini(request.table, request.output, request.ini, shape, added)


def test_without_an_ini_there_are_lines_for_one(here, models):
    ini = ini_of(request_for(here, models), Shape(2, (2, 1)), 1)
    path = here / "scored"
    assert ini.lines == (
        f"PhraseDictionaryMemory name=TranslationModel0 num-features=3 path={path} input-factor=0,1 output-factor=0",
        "TranslationModel0= 0.2 0.2 0.2",
    )
    assert (ini.content, ini.warnings) == (b"", ())


def test_a_table_on_standard_output_will_be_somewhere(here, models):
    ini = ini_of(request_for(here, models, output="-"), Shape(2), 1)
    assert f" path={SOMEWHERE} " in ini.lines[0]
    assert ini.warnings == ()


@pytest.mark.parametrize("name", ["a b", "a#b"])
def test_a_path_that_moses_cannot_read_is_a_warning(here, models, name):
    path = here / name
    ini = ini_of(request_for(here, models, output=str(path)), Shape(2), 1)
    assert ini.warnings == (f"{path}: Moses cannot read paths with blanks or '#': move the table before using it",)


@pytest.mark.parametrize(("weight", "weights"), [(None, "0.3 0.3"), (0.1, "0.1 0.1")])
def test_the_new_one_is_the_old_one_with_further_scores(here, request_with_ini, weight, weights):
    old = here / "table"
    ini = ini_of(request_with_ini(old, weight=weight), Shape(2), 2)
    expected = INI.format(table=here / "scored").replace("num-features=2", "num-features=4")
    assert ini.content.decode() == expected.replace("0.2 0.4", f"0.2 0.4 {weights}")
    assert ini.lines == (expected.split("\n")[1], f"TM= 0.2 0.4 {weights}")
    assert ini.warnings == ()


def test_what_the_user_should_know_of_paths(here, request_with_ini, monkeypatch):
    monkeypatch.chdir(here)
    (here / "other").touch()
    ini = ini_of(request_with_ini("other"), Shape(2), 1)
    assert any("other" in warning for warning in ini.warnings)  # which is not the table that is scored
