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
    assert b"num-features=6 tuneable-components=1,1,0,1,1,1 path=" in extend(fixed, added_columns=2)


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


COUNTED_ELSEWHERE = {
    "group": ("PhraseDictionaryGroup members=B,TranslationModel0 num-features=8", ""),
    "mixture": ("PhraseDictionaryMultiModel components=TranslationModel0,B num-features=4 mode=interpolate lambda=1,1", ""),
    "mixture of counts": ("PhraseDictionaryMultiModelCounts components=A target-table=TranslationModel0 num-features=4", ""),
    "leave one out": ("VW path=w leave-one-out-from=TranslationModel0", ""),
    "a group from elsewhere": ("Distortion", "[feature-add]\nPhraseDictionaryGroup members=TranslationModel0"),
    "another of its name": ("PhraseDictionaryMemory name=TranslationModel0 num-features=4 path=x", ""),
    "overwritten weights": ("Distortion", "[weight-overwrite]\nTranslationModel0= 1 1 1 1"),
    "weights of a later line": ("Distortion", "[weight]\nTranslationModel0: 1 1 1 1"),  # the last character is any
    "alternate weights": ("Distortion", "[alternate-weight-setting]\nid=a\nTranslationModel0= 1 1"),
    "another path": ("Distortion", "[feature-overwrite]\nTranslationModel0 path=/other"),
    "other tuneable scores": ("Distortion", "[feature-overwrite]\nTranslationModel0 tuneable-components=1,1,1,0"),
    "another type": ("Distortion", "[feature-name-overwrite]\nPhraseDictionaryMemory ProbingPT"),
}  # fmt: skip


@pytest.mark.parametrize(("feature", "sections"), COUNTED_ELSEWHERE.values(), ids=COUNTED_ELSEWHERE)
def test_a_number_of_scores_that_is_repeated_elsewhere_is_refused(feature, sections):
    data = INI.replace(b"Distortion\n", feature.encode() + b"\n") + sections.encode() + b"\n"
    ini = MosesIni(data, "moses.ini")
    with pytest.raises(FormatError, match="^moses.ini:" if "later" not in sections else "found 2"):
        extend_ini(ini, ini.phrase_dictionaries[0], Extension("/t.gz", 4, 1))


def test_tuneable_components_are_as_many_as_scores():
    with pytest.raises(FormatError, match="moses.ini:7: expected 4 tuneable-components, .*, found 1,1,0"):
        extend(INI.replace(b"num-features=4", b"num-features=4 tuneable-components=1,1,0"))


def test_what_uses_a_dictionary_does_not_matter_to_others_or_where_only_the_path_changes():
    mixture = b"PhraseDictionaryMemory name=B num-features=4 path=/b\nPhraseDictionaryMultiModel components=B\n"
    assert b"num-features=5 path=/new/t.rnn.gz" in extend(INI.replace(b"Distortion\n", mixture))
    mixed = INI + b"[feature]\nPhraseDictionaryMultiModel components=TranslationModel0\n"
    assert extend(mixed, added_columns=0) == mixed.replace(b"/data/phrase-table.gz", b"/new/t.rnn.gz")


def test_alternate_weights_get_the_new_ones_too():
    settings = b"[alternate-weight-setting]\nid=a ignore-ff=LM0\nTranslationModel0= 1 1 -1 1 # a\nLM0= 1\n"
    more = b"id=b\nTranslationModel0= 0.5 0.5 0.5 0.5\n"
    new = extend(INI + settings + more)
    assert new == extend(INI) + settings.replace(b"-1 1 #", b"-1 1 1 #") + more.replace(b"0.5\n", b"0.5 0.5\n")


@pytest.mark.parametrize(
    ("tuneable", "warned"), [("false", True), ("0", True), ("No", True), ("true", False), ("1", False), (None, False)]
)
def test_warns_of_a_weight_that_will_not_be_tuned(tuneable, warned):
    setting = b"" if tuneable is None else f" tuneable={tuneable}".encode()
    ini = MosesIni(INI.replace(b"num-features=4", b"num-features=4" + setting), "moses.ini")
    _, warnings = extend_ini(ini, ini.choose(), Extension("/t.gz", 4, 1))
    message = f"moses.ini:7: TranslationModel0 has tuneable={tuneable}: MERT will leave the new weight as it is"
    assert warnings == ((message,) if warned else ())


def test_warns_of_another_table(tmp_path):
    for name in ("t.gz", "other.gz"):
        (tmp_path / name).touch()
    ini = MosesIni(INI.replace(b"/data/phrase-table.gz", bytes(tmp_path / "t.gz")), "moses.ini")
    right, wrong = (
        extend_ini(ini, ini.choose(), Extension("/t.gz", 4, 1, before=str(tmp_path / name)))[1]
        for name in ("t.gz", "other.gz")
    )
    assert right == ()
    assert "other.gz: is this the right ini?" in wrong[0]


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
