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


def test_a_binary_dictionary_may_be_anywhere(folder):
    (folder / "t.minphr").touch()
    (folder / "ini").write_text(
        INI.replace("PhraseDictionaryMemory", "PhraseDictionaryCompact").replace("path=t", f"path={folder}/t.minphr")
    )
    summary, dictionary = check_ini("t", "ini", "T")
    assert len(summary) == 2
    assert dictionary == Dictionary("PhraseDictionaryCompact", folder / "t.minphr", 2)


def test_every_line_is_looked_at(folder):
    (folder / "t").write_bytes((folder / "t").read_bytes() + b"c ||| d ||| 0.5\n")
    with pytest.raises(InputError, match="t:3: expected 2 scores as on line 1, found 1"):
        check_ini("t", "ini", None)
