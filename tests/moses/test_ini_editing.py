"""An ini for another table, another type, other weights: what changes, and that nothing else does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_rnn.errors import FormatError, InputError
from moses_rnn.moses.ini_editing import SOMEWHERE, IniEdit, edit_ini, extend_ini, lines_of
from tests.analysis.scored import sign
from tests.moses.ini_text import INI

FEATURE = b"PhraseDictionaryMemory name=TranslationModel0 num-features=5 path=/new/t.gz input-factor=0 # mine"
WEIGHT = b"TranslationModel0= 0.1 -0.3 0.2 0.2 0.2   # four"


def table_of(columns):
    return b"a ||| b ||| " + b" ".join([b"0.5"] * columns) + b" ||| 0-0\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for columns in range(3, 8):
        (tmp_path / f"t{columns}").write_bytes(table_of(columns))
    return tmp_path


def edit(folder, data=INI, **changes):
    (folder / "ini").write_bytes(data)
    return edit_ini(IniEdit(ini="ini", **{"table": "t5", "path": "/new/t.gz"} | changes))


def changed_lines(before, after):
    lines = zip(before.split(b"\n"), after.split(b"\n"), strict=True)
    return [(old, new) for old, new in lines if old != new]


UNNAMED = (b"name=TranslationModel0 ", b""), (b"TranslationModel0=", b"PhraseDictionaryMemory0=")
CHANGES = {  # in the ini before, of the edit, and what is then other than FEATURE and WEIGHT
    "a column": ((), {}, ()),
    "CRLF": (((b"\n", b"\r\n"),), {}, ((b"mine", b"mine\r"), (b"four", b"four\r"))),
    "three columns": ((), {"table": "t7", "weights": (0.5, 0.0, -1e-7)}, ((b"=5", b"=7"), (b"0.2   #", b"0.5 0 -1e-07   #"))),
    "one weight for all": ((), {"table": "t6", "weights": (1 / 3,)}, ((b"=5", b"=6"), (b"0.2   #", b"0.333333 0.333333   #"))),
    "no column": ((), {"table": "t4"}, ((b"=5", b"=4"),)),
    "weights of 0": (((b"0.1 -0.3 0.2 0.2 ", b"0 0 0 0 "),), {}, ((b"0.1 -0.3 0.2 0.2 0.2", b"0 0 0 0 0.2"),)),
    "new columns are tuneable": (
        ((b"=4", b"=4 tuneable-components=1,1,0,1"),), {"table": "t6"}, ((b"=5", b"=6 tuneable-components=1,1,0,1,1,1"), (b"0.2   #", b"0.2 0.2   #"))
    ),
    "no UTF-8": (((b"# mine", b"# \xff"),), {}, ((b"# mine", b"# \xff"),)),
    "settings like others": (((b"input", b"xpath=1\tinput"),), {}, ((b"input", b"xpath=1\tinput"),)),
    "another type": ((), {"type": "ProbingPT"}, ((b"PhraseDictionaryMemory", b"ProbingPT"),)),
    "another type keeps the name that weights have": (
        UNNAMED, {"type": "ProbingPT"}, (*UNNAMED, (b"PhraseDictionaryMemory n", b"ProbingPT n"), (b"=0 #", b"=0 name=PhraseDictionaryMemory0 #"))
    ),
    "a mixture of others": (((b"Distortion", b"PhraseDictionaryMultiModel components=B"),), {"feature": "TranslationModel0"}, ()),
    "a mixture of it, and only another path": (
        ((b"Distortion", b"PhraseDictionaryMultiModel components=TranslationModel0"),), {"table": "t4", "feature": "TranslationModel0"}, ((b"=5", b"=4"),)
    ),
}  # fmt: skip


@pytest.mark.parametrize(("before", "changes", "after"), CHANGES.values(), ids=CHANGES)
def test_changes_number_path_type_and_weights_and_nothing_else(folder, before, changes, after):
    data, lines = INI, [FEATURE, WEIGHT][: 1 if changes.get("table") == "t4" else 2]
    for old, new in before:
        data = data.replace(old, new)
    for old, new in after:
        lines = [line.replace(old, new) for line in lines]
    assert [new for _, new in changed_lines(data, edit(folder, data, **changes).content)] == lines


@pytest.mark.parametrize("blank", ["\u3000", "\u00a0", "\u2028", "\x0b", "\x0c", "\x85", "\x1c", "\r"])
def test_only_blanks_and_tabs_part_words(folder, blank):
    data = INI.replace(b"/data/phrase", f"/da{blank}ta/phrase".encode())
    assert edit(folder, data).content == edit(folder).content
    if blank != "\r":  # which no new path may have
        moved = f"/da{blank}ta/t.gz"
        assert edit(folder, path=moved).content == edit(folder).content.replace(b"/new/t.gz", moved.encode())
    end = f"{blank}\n".encode()
    assert edit(folder, INI + end).content == edit(folder).content + end


def test_alternate_weights_get_the_new_ones_too(folder):
    settings = b"[alternate-weight-setting]\nid=a ignore-ff=LM0\nTranslationModel0= 1 1 -1 1 # a\nLM0= 1\n"
    more = b"id=b\nTranslationModel0= 0.5 0.5 0.5 0.5\n"
    new = edit(folder, INI + settings + more).content
    assert new == edit(folder).content + settings.replace(b"1 #", b"1 1 #") + more.replace(b"0.5\n", b"0.5 0.5\n")


COUNTED_ELSEWHERE = {
    "mixture of counts": ("PhraseDictionaryMultiModelCounts components=A target-table=TranslationModel0 num-features=4", ""),
    "leave one out": ("VW path=w leave-one-out-from=TranslationModel0", ""),
    "a group from elsewhere": ("Distortion", "[feature-add]\nPhraseDictionaryGroup members=TranslationModel0"),
    "another of its name": ("KENLM name=TranslationModel0 path=x", ""),
    "weights of a later line": ("Distortion", "[weight]\nTranslationModel0: 1 1 1 1"),  # the last character is any
    "alternate weights": ("Distortion", "[alternate-weight-setting]\nid=a\nTranslationModel0= 1 1"),
    "scores of all features": ("VWFeatureTargetPhraseScores name=V used-by=VW0", ""),
    "another path": ("Distortion", "[feature-overwrite]\nTranslationModel0 path=/other"),
    "other tuneable scores": ("Distortion", "[feature-overwrite]\nTranslationModel0 tuneable-components=1,1,1,0"),
    "another type": ("Distortion", "[feature-name-overwrite]\nPhraseDictionaryMemory ProbingPT"),
}  # fmt: skip


@pytest.mark.parametrize(("feature", "sections"), COUNTED_ELSEWHERE.values(), ids=COUNTED_ELSEWHERE)
def test_a_number_of_scores_that_is_repeated_elsewhere_is_refused(folder, feature, sections):
    data = INI.replace(b"Distortion\n", feature.encode() + b"\n") + sections.encode() + b"\n"
    with pytest.raises(FormatError, match="^ini:" if "later" not in sections else "found 2"):
        edit(folder, data, feature="TranslationModel0")


def test_other_tuneable_components_than_scores_are_refused(folder):
    with pytest.raises(FormatError, match="ini:7: expected 4 tuneable-components, .*, found 1,1,0"):
        edit(folder, INI.replace(b"=4", b"=4 tuneable-components=1,1,0"))


def test_what_makes_a_binary_dictionary(folder):
    made = "$MOSES_ROOT/bin/CreateProbingPT --num-scores 5 --input-pt t5 --output-dir "
    assert edit(folder).command is None
    assert edit(folder, type="ProbingPT").command == f"{made}/new/t.gz"
    assert edit(folder, type="ProbingPT", path=None).command == f"{made}t5.probing"
    binary = INI.replace(b"PhraseDictionaryMemory", b"ProbingPT")  # stays one
    assert f" path={folder}/t5.probing " in edit(folder, binary, path=None).content.decode()


def test_a_binary_dictionary_ranks_targets_by_a_score_of_the_table(folder):
    sign(folder / "t4", {2: "RNN"})  # without lexical scores
    on_disk = {"type": "PhraseDictionaryOnDisk", "path": "o"}
    assert edit(folder, table="t4", **on_disk).command.endswith("CreateOnDiskPt 1 1 4 1000000 1 t4 o")
    assert edit(folder, **on_disk).command.endswith("CreateOnDiskPt 1 1 5 1000000 2 t5 o")
    two = INI.replace(b"=4", b"=2").replace(b"0.1 -0.3 0.2 0.2 ", b"0.1 -0.3 ")
    assert edit(folder, two, **on_disk).command.endswith("CreateOnDiskPt 1 1 5 1000000 1 t5 o")


def test_a_given_path_becomes_absolute_in_ini_and_command_alike(folder):
    new = edit(folder, type="ProbingPT", path="made", absolute_paths=True)
    assert f" path={folder}/made " in new.content.decode()
    assert new.command.endswith(f" {folder}/made")


def test_logarithms_are_refused(folder):
    sign(folder / "t5", {4: {"name": "RNN", "written_as": "natural logarithm"}})
    with pytest.raises(InputError, match="^t5: expected probabilities in score 5, found logarithms"):
        edit(folder)


@pytest.mark.parametrize("kind", ["PhraseDictionaryCompact", "ProbingPT"])
def test_a_dictionary_that_cannot_hold_rules_is_refused(folder, kind):
    (folder / "t5").write_bytes(b"a [X] ||| b [X] ||| 1 1 1 1 1 ||| 0-0\n")
    assert edit(folder, type="PhraseDictionaryOnDisk").command
    with pytest.raises(InputError, match=f"^{kind}: expected a type that holds hierarchical rules"):
        edit(folder, type=kind)


@pytest.mark.parametrize(
    ("old", "table", "absolute", "new"),
    [
        ("./model/t4", "model/t5", False, "model/t5"),
        ("model/t4", "t5", False, "@t5"),
        ("gone", "t5", False, "@t5"),
        ("t4", "t5", True, "@t5"),  # seen from where the command runs
        ("x" * 300, "t5", False, "@t5"),
    ],
)
def test_a_relative_path_stays_relative_in_its_folder(folder, old, table, absolute, new):
    (folder / "model").mkdir()
    for columns in (4, 5):
        (folder / "model" / f"t{columns}").write_bytes(table_of(columns))
    (folder / "conf").mkdir()
    (folder / "conf" / "ini").write_bytes(INI.replace(b"/data/phrase-table.gz", old.encode()))
    edited = edit_ini(IniEdit(ini="conf/ini", table=table, absolute_paths=absolute))
    assert f" path={new.replace('@', f'{folder}/')} " in edited.content.decode()


def test_a_path_with_a_comma_is_one_path_even_if_its_parts_are_files(folder):
    for name in ("lm", "t.gz", "lm,t.gz"):
        (folder / name).touch()
    lm = b"[feature]\nKENLM path=lm,t.gz order=3\n"
    edited = edit(folder, INI.replace(b"[feature]\n", lm, 1), table="t4", absolute_paths=True)
    assert f"KENLM path={folder}/lm,t.gz order=3\n".encode() in edited.content


@pytest.mark.parametrize(
    ("loaded", "made_from", "warned"),
    [
        ("t4", "t4", False),
        ("t3", "t4", True),
        ("t4", "t6", False),
        ("t3", "gone", False),
        ("t5", None, False),
        ("t4", "elsewhere/t5", False),
    ],
)
def test_warns_where_another_table_was_scored(folder, loaded, made_from, warned):
    for table, before in {"t5": made_from, "t6": "t4"}.items():
        if before:
            sign(folder / table, {}, input=before)
    data = INI.replace(b"/data/phrase-table.gz", bytes(folder / loaded))
    assert ["is this the right ini?" in warning for warning in edit(folder, data).warnings] == [True] * warned


@pytest.mark.parametrize("value", ["0", "No", "true"])
def test_warns_of_a_weight_that_will_not_be_tuned(folder, value):
    data = INI.replace(b"=4", b"=4 tuneable=" + value.encode())
    message = f"ini:7: TranslationModel0 has tuneable={value}: MERT will leave the new weight as it is"
    assert edit(folder, data).warnings == (() if value == "true" else (message,))
    only_path = "t4 has as many scores as TranslationModel0 had: only its path changes"
    assert edit(folder, data, table="t4").warnings == (only_path,)


@given(st.binary(max_size=200), st.integers(0, len(INI)))
def test_any_bytes_anywhere_are_kept_or_refused(tmp_path_factory, noise, place):
    folder = tmp_path_factory.getbasetemp()
    (folder / "noise.ini").write_bytes(data := INI[:place] + noise + INI[place:])
    try:
        new = extend_ini(
            IniEdit(ini=str(folder / "noise.ini"), table="/t.gz", feature="TranslationModel0"), "before", 4, 1
        )
    except InputError:
        return
    assert len(changed_lines(data, new.content)) == 2


@pytest.mark.parametrize("relative", [False, True])
def test_an_ini_for_a_table_that_is_yet_to_be_scored(folder, relative):
    data = INI.replace(b"/data/phrase-table.gz", b"t4") + b"[weight-file]\nt3\n"
    (folder / "ini").write_bytes(data)
    new = extend_ini(IniEdit(ini="ini", table="scored", weights=(0.5,), absolute_paths=not relative), "t4", 4, 2)
    start = b"" if relative else bytes(folder) + b"/"
    weights = b"TranslationModel0= 0.1 -0.3 0.2 0.2 0.5 0.5"
    feature = b"PhraseDictionaryMemory name=TranslationModel0 num-features=6 path=%bscored input-factor=0" % start
    expected = [feature + b" # mine", weights + b"   # four", *([] if relative else [start + b"t3"])]
    assert [after for _, after in changed_lines(data, new.content)] == expected
    assert new.lines == (feature.decode(), weights.decode())
    assert [warning[:28] for warning in new.warnings] == (["relative paths (scored, t3):"] if relative else [])


def test_an_ini_of_another_table(folder):
    (folder / "ini").write_bytes(INI.replace(b"/data/phrase-table.gz", b"t3"))
    (warning,) = extend_ini(IniEdit(ini="ini", table="scored", absolute_paths=True), "t4", 4, 1).warnings
    assert warning.endswith("t3, which is not the scored table t4: is this the right ini?")
    for columns, advice in {3: "Is it already extended?", 5: "Is this the ini of another table?"}.items():
        with pytest.raises(
            FormatError,
            match=rf"ini:7: expected num-features={columns}, the table's number of scores, found .*=4\n  {advice}",
        ):
            extend_ini(IniEdit(ini="ini", table="scored"), "t", columns, 1)


@pytest.mark.parametrize(
    ("table", "path", "warned"), [("scored", "@scored", 0), ("-", SOMEWHERE, 0), ("a b", "@a b", 1), ("a#b", "@a#b", 1)]
)
def test_lines_for_a_table_without_an_ini(folder, table, path, warned):
    new, path = lines_of(table, 3, (2, 1)), path.replace("@", f"{folder}/")
    assert new.lines == (
        f"PhraseDictionaryMemory name=TranslationModel0 num-features=3 path={path} input-factor=0,1 output-factor=0",
        "TranslationModel0= 0.2 0.2 0.2",
    )
    warning = f"{path}: Moses cannot read paths with blanks or '#': move the table before using it"
    assert new.warnings == (warning,) * warned
