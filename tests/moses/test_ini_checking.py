"""A table beside the ini that names it."""

import pytest

from moses_rnn.errors import InputError
from moses_rnn.moses.ini_checking import check_ini
from moses_rnn.moses.programs import Dictionary

INI = "[feature]\nPhraseDictionaryMemory name=T num-features=2 path=t\n[weight]\nT= 0.2 0.3\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t").write_bytes(b"a ||| b ||| 0.5 1 ||| 0-0\nb ||| c ||| 0.5 1 ||| 0-0\n")
    (tmp_path / "ini").write_text(INI)
    return tmp_path


def test_a_table_and_its_ini(folder):
    summary, dictionary = check_ini("t", "ini", None)
    assert summary == [
        "t: 2 lines with 2 scores",
        "ini:2: T has num-features=2 and 2 weights",
        "ini: relative paths (t): run Moses in their folder",
    ]
    assert dictionary == Dictionary("PhraseDictionaryMemory", folder / "t", 2)


def test_a_binary_dictionary_may_be_anywhere(folder):
    (folder / "t.minphr").touch()
    (folder / "ini").write_text(
        INI.replace("PhraseDictionaryMemory", "PhraseDictionaryCompact").replace("path=t", f"path={folder}/t.minphr")
    )
    summary, dictionary = check_ini("t", "ini", "T")
    assert len(summary) == 2
    assert dictionary == Dictionary("PhraseDictionaryCompact", folder / "t.minphr", 2)


MISFITS = {
    "number": ("=2", "=3", "ini:2: expected num-features=2, as t has scores, found 3"),
    "no number": ("=2", "=x", "ini:2: expected num-features= and a number, found num-features=x"),
    "weights": ("0.3", "0.3 0.4", "ini:4: expected 2 weights, one for each score, found 3"),
    "nothing there": ("path=t", "path=u", "ini:2: expected a dictionary at path=, found nothing at u"),
    "another table": ("path=t", "path=other", "ini:2: expected path=t, found path=other"),
}


@pytest.mark.parametrize(("old", "new", "message"), MISFITS.values(), ids=MISFITS)
def test_a_table_and_another_ini(folder, old, new, message):
    (folder / "other").write_bytes((folder / "t").read_bytes())
    (folder / "ini").write_text(INI.replace(old, new))
    with pytest.raises(InputError, match=message):
        check_ini("t", "ini", None)


def test_every_line_is_looked_at(folder):
    (folder / "t").write_bytes((folder / "t").read_bytes() + b"c ||| d ||| 0.5\n")
    with pytest.raises(InputError, match="t:3: expected 2 scores as on line 1, found 1"):
        check_ini("t", "ini", None)
