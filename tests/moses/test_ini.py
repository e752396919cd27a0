"""Which phrase dictionary of an ini is meant."""

import gzip

import pytest

from moses_rnn.errors import FormatError, InputError
from moses_rnn.moses.ini import MosesIni
from tests.moses.ini_text import INI

SECOND = b"PhraseDictionaryMemory name=Backoff num-features=4 path=/data/second.gz\nDistortion\n"


def test_several_dictionaries_need_a_choice():
    ini = MosesIni(INI.replace(b"Distortion\n", SECOND), "moses.ini")
    known = r"found 0 \(in the file: TranslationModel0, Backoff\)"
    with pytest.raises(InputError, match=f"expected one phrase dictionary for x.gz, {known}"):
        ini.choose(table="x.gz")
    with pytest.raises(InputError, match="expected one phrase dictionary named 'TM', found 0"):
        ini.choose(name="TM")
    assert ini.choose(name="Backoff").options["path"] == "/data/second.gz"


def test_a_compressed_ini_is_refused():
    with pytest.raises(
        FormatError, match=r"^moses.ini.gz: expected plain text, because Moses reads no compressed ini, found a comp"
    ):
        MosesIni(gzip.compress(INI), "moses.ini.gz")


def test_the_dictionary_of_the_scored_table_is_meant(tmp_path, monkeypatch):
    (tmp_path / "a.gz").touch()
    (tmp_path / "b.gz").touch()
    lines = b"PhraseDictionaryMemory name=A path=a\nRuleTable name=B path=b.gz\nRuleTable path=/" + b"x" * 300
    ini = MosesIni(b"[feature]\n" + lines, str(tmp_path / "moses.ini"))
    for table in ("a", "a.gz"):  # either stands for a.gz
        assert ini.choose(table=str(tmp_path / table)).name == "A"
    monkeypatch.chdir(tmp_path)
    assert ini.choose(table="./b.gz").name == ini.choose(name="./b.gz", table="a.gz").name == "B"
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "b.gz").touch()
    monkeypatch.chdir(tmp_path / "c")
    assert ini.places(ini.choose(name="B"), "")[0] == tmp_path / "b.gz"  # the ini's folder comes first


def test_a_dictionary_beside_the_scored_table_is_meant(tmp_path):
    (tmp_path / "t.gz").touch()
    (tmp_path / "t.minphr").touch()
    lines = b"PhraseDictionaryMemory path=o\nPhraseDictionaryCompact path=t.minphr\n"
    ini = MosesIni(b"[feature]\n" + lines, str(tmp_path / "ini"))
    assert ini.choose(table=str(tmp_path / "t.gz")).type == "PhraseDictionaryCompact"


def test_names_of_unnamed_features_count_only_these():
    """As FeatureFunction::ParseLine counts them."""
    kinds = [b"Memory name=A", b"Memory", b"Memory", b"OnDisk"]
    ini = MosesIni(b"[feature]\n" + b"".join(b"PhraseDictionary%b path=x\n" % kind for kind in kinds), "i")
    names = [feature.name.removeprefix("PhraseDictionary") for feature in ini.phrase_dictionaries]
    assert names == ["A", "Memory0", "Memory1", "OnDisk0"]


def test_an_ini_of_the_old_format_is_called_that():
    old = b"[ttable-file]\n0 0 0 4 model/t.gz\n[weight-t]\n0.1\n"
    with pytest.raises(FormatError, match=r"i:2: .* found \[ttable-file\], of the old format\n.*-to-v2.perl"):
        MosesIni(old, "i")
