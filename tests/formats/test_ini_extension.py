import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_rnn.errors import FormatError, InputError
from moses_rnn.formats.ini_extension import Extension, default_lines, extend_ini
from moses_rnn.formats.moses_ini import MosesIni
from tests.formats.ini_text import INI, NEW_FEATURE, NEW_WEIGHT, changed_lines, extend


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


def test_a_member_of_a_group_is_refused():
    """The group repeats its members' numbers (PhraseDictionaryGroup.cpp)."""
    group = b"PhraseDictionaryGroup name=G members=TranslationModel0,B num-features=8\nDistortion\n"
    ini = MosesIni(INI.replace(b"Distortion\n", group), "moses.ini")
    with pytest.raises(
        FormatError, match="moses.ini:8: expected no group with TranslationModel0 as a member, found G\n"
    ):
        extend_ini(ini, ini.choose(name="TranslationModel0"), Extension("/t.gz", 4, 1))


def test_lines_for_a_table_without_ini():
    assert default_lines("/t.gz", 5) == (
        "PhraseDictionaryMemory name=TranslationModel0 num-features=5 path=/t.gz input-factor=0 output-factor=0",
        "TranslationModel0= 0.2 0.2 0.2 0.2 0.2",
    )


@given(st.binary(max_size=200), st.integers(0, len(INI)))
def test_any_bytes_anywhere_are_kept_or_refused(noise, place):
    data = INI[:place] + noise + INI[place:]
    try:
        new = extend(data)
    except InputError:
        return
    assert len(changed_lines(data, new)) == 2
