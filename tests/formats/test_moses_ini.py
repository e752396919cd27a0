from pathlib import Path

import pytest

from moses_rnn.errors import FormatError, InputError
from moses_rnn.formats.moses_ini import MosesIni
from tests.formats.ini_text import INI, NEW_FEATURE, NEW_WEIGHT, changed_lines, extend

SECOND = b"PhraseDictionaryMemory name=Backoff num-features=4 path=/data/second.gz\nDistortion\n"


def two_tables():
    return MosesIni(INI.replace(b"Distortion\n", SECOND), "moses.ini")


def test_several_dictionaries_need_a_choice():
    with pytest.raises(
        InputError,
        match=r"expected one phrase dictionary for x.gz, found 0 \(in the file: TranslationModel0, Backoff\)",
    ):
        two_tables().choose(table="x.gz")
    with pytest.raises(InputError, match="expected one phrase dictionary named 'TM', found 0"):
        two_tables().choose(name="TM")
    assert two_tables().choose(name="Backoff").options["path"] == "/data/second.gz"


def test_the_dictionary_of_the_scored_table_is_meant(tmp_path, monkeypatch):
    for name in ("a.gz", "b.gz"):
        (tmp_path / name).write_bytes(b"")
    ini = MosesIni(
        b"[feature]\nPhraseDictionaryMemory name=A num-features=1 path=a\nRuleTable name=B num-features=1 path=b.gz\n",
        str(tmp_path / "moses.ini"),
    )
    assert ini.choose(table=str(tmp_path / "a.gz")).name == "A"  # `path=a` stands for a.gz
    monkeypatch.chdir(tmp_path)
    assert ini.choose(table="./b.gz").name == "B"


def test_a_relative_path_stays_relative_in_its_folder(tmp_path, monkeypatch):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "t.gz").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    line = b"[feature]\nPhraseDictionaryMemory name=A num-features=1 path=%s\n"
    relative = MosesIni(line % b"model/t.gz", "moses.ini")
    assert relative.path_like(relative.choose(), Path("model/t.rnn.gz")) == "model/t.rnn.gz"
    assert relative.path_like(relative.choose(), Path("t.rnn.gz")) == str(tmp_path / "t.rnn.gz")
    absolute = MosesIni(line % bytes(tmp_path / "model" / "t.gz"), "moses.ini")
    assert absolute.path_like(absolute.choose(), Path("model/t.rnn.gz")) == str(tmp_path / "model/t.rnn.gz")


def test_unnamed_features_have_their_types_name():
    ini = MosesIni(
        b"[feature]\nPhraseDictionaryMemory num-features=1 path=a\nPhraseDictionaryMemory num-features=1 path=b\n", "i"
    )
    assert [feature.name for feature in ini.phrase_dictionaries] == [
        "PhraseDictionaryMemory0",
        "PhraseDictionaryMemory1",
    ]


def test_names_of_unnamed_features_count_only_these():
    """As FeatureFunction::ParseLine counts them."""
    lines = b"[feature]\nPhraseDictionaryMemory name=A path=a\nPhraseDictionaryMemory path=b\n"
    assert [feature.name for feature in MosesIni(lines, "i").phrase_dictionaries] == ["A", "PhraseDictionaryMemory0"]


def test_a_header_ends_at_its_bracket():
    """Moses takes `[weight] x` for a header; blanks before it do not matter either."""
    assert [new for _, new in changed_lines(INI, extend(INI.replace(b"[weight]\n", b" [weight] x\n")))][
        -1
    ] == NEW_WEIGHT


@pytest.mark.parametrize("blank", ["\u3000", "\u00a0", "\u2028", "\x0b", "\x0c", "\x85", "\x1c", "\r"])
def test_only_blanks_and_tabs_part_words(blank):
    data = INI.replace(b"/data/phrase", f"/da{blank}ta/phrase".encode())
    ini = MosesIni(data, "moses.ini")
    assert ini.choose().options["path"] == f"/da{blank}ta/phrase-table.gz"
    assert extend(data) == extend(INI)
    if blank != "\r":  # which no new path may have
        moved = f"/da{blank}ta/t.gz"
        assert extend(data, table=moved) == extend(INI).replace(b"/new/t.rnn.gz", moved.encode())
    assert extend(INI + f"{blank}\n".encode()) == extend(INI) + f"{blank}\n".encode()


def test_an_ini_of_the_old_format_is_called_that():
    old = b"[ttable-file]\n0 0 0 4 model/t.gz\n[weight-t]\n0.1\n"
    for wanted in ({"table": "t"}, {"name": "PhraseDictionaryMemory0"}):
        with pytest.raises(FormatError, match=r"i:2: .* found \[ttable-file\], of the old format\n.*-to-v2.perl"):
            MosesIni(old, "i").choose(**wanted)


def test_lines_of_a_new_ini():
    assert MosesIni(extend(INI), "new").lines_of("TranslationModel0") == (
        NEW_FEATURE.decode().removesuffix(" # mine"),
        NEW_WEIGHT.decode().removesuffix("   # four"),
    )


def test_a_path_that_the_system_cannot_look_up_is_another_one(tmp_path):
    table = tmp_path / "t.gz"
    table.touch()
    ini = MosesIni(INI.replace(b"/data/phrase-table.gz", b"/" + b"x" * 300), str(tmp_path / "moses.ini"))
    feature = ini.choose()
    assert not ini.is_path_of(feature, str(table))
    assert ini.path_like(feature, table) == str(table)
