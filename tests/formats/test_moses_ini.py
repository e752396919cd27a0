from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_rnn.errors import FormatError, InputError
from moses_rnn.formats.ini_extension import Extension, default_lines, extend_ini
from moses_rnn.formats.moses_ini import MosesIni

INI = b"""\
# comment with PhraseDictionaryMemory name=Other num-features=9
[input-factors]
0

[feature]
UnknownWordPenalty
PhraseDictionaryMemory name=TranslationModel0 num-features=4 path=/data/phrase-table.gz input-factor=0 # mine
Distortion
KENLM name=LM0 factor=0 path=/data/lm.arpa order=3

[weight]
# not optimised
UnknownWordPenalty0= 1
TranslationModel0= 0.1 -0.3 0.2 0.2   # four
LM0= 0.5
"""
NEW_FEATURE = b"PhraseDictionaryMemory name=TranslationModel0 num-features=5 path=/new/t.rnn.gz input-factor=0 # mine"
NEW_WEIGHT = b"TranslationModel0= 0.1 -0.3 0.2 0.2 0.2   # four"


def extend(data, **changes):
    ini = MosesIni(data, "moses.ini")
    extension = Extension(**{"table": "/new/t.rnn.gz", "old_columns": 4, "added_columns": 1, **changes})
    return extend_ini(ini, ini.choose(), extension)


def changed_lines(before, after):
    lines = zip(before.split(b"\n"), after.split(b"\n"), strict=True)
    return [(old, new) for old, new in lines if old != new]


def test_changes_number_path_and_weights_and_nothing_else():
    assert [new for _, new in changed_lines(INI, extend(INI))] == [NEW_FEATURE, NEW_WEIGHT]


def test_keeps_crlf():
    crlf = INI.replace(b"\n", b"\r\n")
    assert extend(crlf) == extend(INI).replace(b"\n", b"\r\n")


def test_several_columns_and_given_weights():
    new = extend(INI, added_columns=3, weights=(0.5, 0.0, -1.0))
    assert b"num-features=7 " in new
    assert b"TranslationModel0= 0.1 -0.3 0.2 0.2 0.5 0 -1   # four" in new


def test_weights_start_as_large_as_the_others_on_average():
    new = extend(INI.replace(b"0.1 -0.3 0.2 0.2", b"0 0 0 0"))
    assert b"TranslationModel0= 0 0 0 0 0.2 " in new  # all zero: what train-model.perl gives


def test_new_columns_are_tuneable():
    fixed = INI.replace(b"num-features=4", b"num-features=4 tuneable-components=1,1,0,1")
    assert b"num-features=5 tuneable-components=1,1,0,1,1 path=" in extend(fixed)


def test_bytes_that_are_no_utf8_stay():
    assert b"# \xff\xfe\n" in extend(INI + b"# \xff\xfe\n")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"num-features=4", b"num-features=5", r"moses.ini:7: expected num-features=4 as the table's scores, found num-features=5\n  Has it been extended already\? Then it loads a scored table: give the ini that the table had before"),
        (b"num-features=4", b"num-features=3", r"moses.ini:7: expected num-features=4 as the table's scores, found num-features=3\n  Is this the ini of another table\?"),
        (b"num-features=4 ", b"", "moses.ini:7: expected num-features=4 as the table's scores, found no num-features"),
        (b"num-features=4", b"num-features=4 num-features=4", "moses.ini:7: expected key=value settings, each once, found 'num-features=4' given twice"),
        (b"input-factor=0 # mine", b"input-factor # mine", "moses.ini:7: expected key=value settings, each once, found 'input-factor' without '='"),
        (b"0.2 0.2   #", b"0.2   #", "moses.ini:14: expected 4 weights, one for each score, found 3"),
        (b"0.2 0.2   #", b"0.2 x   #", "moses.ini:14: expected finite numbers as weights, found '0.1 -0.3 0.2 x'"),
        (b"TranslationModel0= ", b"TranslationModel0=", r"expected one line 'TranslationModel0= w w …' in \[weight\], found 0"),
        (b"LM0= 0.5", b"TranslationModel0= 1 1 1 1", r"expected one line 'TranslationModel0= w w …' in \[weight\], found 2"),
        (b"0.2 0.2   #", b"0.2 nan   #", "moses.ini:14: expected finite numbers as weights, found '0.1 -0.3 0.2 nan'"),
        (b"0.2 0.2   #", b"0.2 2e333   #", "moses.ini:14: expected finite numbers as weights, found '0.1 -0.3 0.2 2e333'"),
        (b"0.2 0.2   #", b"0.2 1_0   #", "moses.ini:14: expected finite numbers as weights, found '0.1 -0.3 0.2 1_0'"),
        (b"0.2 0.2   #", "0.2 \u0663   #".encode(), "moses.ini:14: expected finite numbers as weights"),
        (b"0.2 0.2   #", "0.2\u30000.2   #".encode(), "moses.ini:14: expected finite numbers as weights"),  # Moses reads one word
        (b"path=/data/phrase-table.gz ", b"", "moses.ini:7: expected a path= setting, found none"),
        (b"LM0= 0.5", b"[weight-overwrite]\nLM0= 1 TranslationModel0= 1 x x 1",
         r"moses.ini:16: expected no TranslationModel0= in \[weight-overwrite\], found 'LM0= 1 .*\n  These weights win over"),
        (b"PhraseDictionaryMemory name=T", b"ProbingPT name=T", r"expected a text table \(.*\), found ProbingPT"),
    ],
)  # fmt: skip
def test_refuses_what_contradicts_itself(old, new, message):
    with pytest.raises(FormatError, match=message):
        extend(INI.replace(old, new))


@pytest.mark.parametrize("path", ["/a b/t.gz", "/a#b/t.gz"])
def test_refuses_paths_that_moses_cannot_read(path):
    with pytest.raises(FormatError, match=r"expected a path that Moses can read \(no blanks, no '#'\), found '/a"):
        extend(INI, table=path)


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


def test_no_dictionary_at_all():
    with pytest.raises(InputError, match=r"found 0 \(in the file: none\)"):
        MosesIni(b"[feature]\nDistortion\n", "moses.ini").choose(table="t.gz")


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


def test_a_member_of_a_group_is_refused():
    """The group repeats its members' numbers (PhraseDictionaryGroup.cpp)."""
    group = b"PhraseDictionaryGroup name=G members=TranslationModel0,B num-features=8\nDistortion\n"
    ini = MosesIni(INI.replace(b"Distortion\n", group), "moses.ini")
    with pytest.raises(
        FormatError, match="moses.ini:8: expected no group with TranslationModel0 as a member, found G\n"
    ):
        extend_ini(ini, ini.choose(name="TranslationModel0"), Extension("/t.gz", 4, 1))


def test_warns_of_another_table_and_of_a_weight_that_will_not_be_tuned(tmp_path):
    table = tmp_path / "t.gz"
    table.write_bytes(b"")
    ini = MosesIni(INI.replace(b"num-features=4", b"num-features=4 tuneable=false"), "moses.ini")
    assert ini.warnings(ini.choose(), str(table)) == (
        f"moses.ini:7: TranslationModel0 has path=/data/phrase-table.gz, which is not the scored table {table}: is this the right ini?",
        "moses.ini:7: TranslationModel0 has tuneable=false: MERT will leave the new weight as it is",
    )
    right = MosesIni(INI.replace(b"/data/phrase-table.gz", bytes(table)), "moses.ini")
    assert right.warnings(right.choose(), str(table)) == ()


def test_lines_for_a_table_without_ini():
    assert default_lines("/t.gz", 5) == (
        "PhraseDictionaryMemory name=TranslationModel0 num-features=5 path=/t.gz input-factor=0 output-factor=0",
        "TranslationModel0= 0.2 0.2 0.2 0.2 0.2",
    )


def test_lines_of_a_new_ini():
    assert MosesIni(extend(INI), "new").lines_of("TranslationModel0") == (
        NEW_FEATURE.decode().removesuffix(" # mine"),
        NEW_WEIGHT.decode().removesuffix("   # four"),
    )


@given(st.binary(max_size=200), st.integers(0, len(INI)))
def test_any_bytes_anywhere_are_kept_or_refused(noise, place):
    data = INI[:place] + noise + INI[place:]
    try:
        new = extend(data)
    except InputError:
        return
    assert len(changed_lines(data, new)) == 2


def test_a_path_that_the_system_cannot_look_up_is_another_one(tmp_path):
    table = tmp_path / "t.gz"
    table.touch()
    ini = MosesIni(INI.replace(b"/data/phrase-table.gz", b"/" + b"x" * 300), str(tmp_path / "moses.ini"))
    feature = ini.choose()
    assert "is this the right ini?" in ini.warnings(feature, str(table))[0]
    assert ini.path_like(feature, table) == str(table)
