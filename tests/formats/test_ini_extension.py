from hypothesis import given
from hypothesis import strategies as st

from moses_rnn.errors import InputError
from moses_rnn.formats.ini_extension import default_lines
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
