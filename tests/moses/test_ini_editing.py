"""An ini for another table, another type, other weights, other paths."""

import json

import pytest

from moses_rnn.errors import InputError
from moses_rnn.moses.ini_editing import IniEdit, edit_ini

INI = "[feature]\nPhraseDictionaryMemory name=T num-features=2 path=/old/t\n[weight]\nT= 0.2 0.4\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ini").write_text(INI)
    (tmp_path / "scored").write_bytes(b"a ||| b ||| 0.5 1 0.25 0.125 ||| 0-0\n")
    return tmp_path


def edit(**changes):
    return edit_ini(IniEdit("ini", **changes))


def test_a_text_table_takes_the_old_ones_place(folder):
    edited = edit(table="scored")
    assert edited.content.decode() == INI.replace("=2 path=/old/t", f"=4 path={folder}/scored").replace(
        "0.2 0.4", "0.2 0.4 0.3 0.3"
    )
    assert (edited.old, edited.warnings, edited.commands) == (INI.encode(), (), ())


@pytest.mark.parametrize(("weights", "line"), [((), "0.3 0.3"), ((0.5,), "0.5 0.5"), ((0.5, -1.0), "0.5 -1")])
def test_one_weight_for_all_or_one_for_each(folder, weights, line):
    assert f"T= 0.2 0.4 {line}\n" in edit(table="scored", weights=weights).content.decode()


def test_another_type_and_what_makes_it(folder):
    edited = edit(table="scored", type="ProbingPT")
    assert f"ProbingPT name=T num-features=4 path={folder}/scored.probing\n" in edited.content.decode()
    assert edited.commands == (
        "$MOSES_ROOT/bin/CreateProbingPT --num-scores 4 --input-pt scored --output-dir scored.probing",
    )


def test_only_its_paths(folder):
    (folder / "t").touch()
    (folder / "ini").write_text(INI.replace("/old/t", "t"))
    assert edit().warnings == ("relative paths (t): run Moses in their folder; mert-moses.pl needs absolute ones",)
    edited = edit(absolute_paths=True)
    assert edited.content.decode() == INI.replace("/old/t", f"{folder}/t")
    assert edited.warnings == ()


def test_a_new_path_is_absolute_too_wherever_the_ini_is(folder):
    (folder / "conf").mkdir()
    (folder / "old").touch()
    (folder / "conf" / "ini").write_text(INI.replace("/old/t", "old"))  # seen from where the command runs
    for kind, path in ((None, "scored"), ("ProbingPT", "scored.probing")):
        edited = edit_ini(IniEdit("conf/ini", table="scored", type=kind, absolute_paths=True))
        assert f" path={folder}/{path}\n" in edited.content.decode()
        assert edited.warnings == ()


@pytest.mark.parametrize(
    ("loaded", "made_from", "warned"),
    [
        ("t", "t", False),
        ("other", "t", True),
        ("t", "between", False),
        ("other", "gone", False),
        ("scored", None, False),
    ],
)
def test_warns_where_another_table_was_scored_as_scoring_does(folder, loaded, made_from, warned):
    """The signature beside the scored table says what it was made from, perhaps in several steps."""
    for name in ("t", "other", "between"):
        (folder / name).touch()
    for table, before in {"scored": made_from, "between": "t"}.items():
        if before:
            signature = {"program": "moses_rnn 1", "input": before}
            (folder / f"{table}.json").write_text(json.dumps(signature))
    (folder / "ini").write_text(INI.replace("/old/t", str(folder / loaded)))
    assert any("is this the right ini?" in warning for warning in edit(table="scored").warnings) == warned


def test_warns_of_a_weight_that_will_not_be_tuned_as_scoring_does(folder):
    (folder / "ini").write_text(INI.replace("name=T", "name=T tuneable=false"))
    assert "tuneable=false: MERT will leave" in edit(table="scored").warnings[0]
    (folder / "scored").write_bytes(b"a ||| b ||| 0.5 1\n")  # no new weight
    assert not any("tuneable" in warning for warning in edit(table="scored").warnings)


def test_as_many_scores_as_before(folder):
    (folder / "scored").write_bytes(b"a ||| b ||| 0.5 1\n")
    assert edit(table="scored").warnings == ("scored has as many scores as T had: only its path changes",)


def test_what_changed_as_diff_prints_it(folder):
    lines = edit(table="scored").diff("new").split("\n")
    assert lines[:2] == ["--- ini", "+++ new"]
    assert [line[:3] for line in lines if line[0] in "-+"] == ["---", "+++", "-Ph", "+Ph", "-T=", "+T="]


REFUSED = {
    "fewer scores": ({}, b"a ||| b ||| 1\n", r"ini:2: expected at most 1 scores, as scored has, found num-features=2\n  Give"),
    "no such type": ({"type": "X"}, None, r"--type X: expected a type that a text table is, or is made into: .*\n  --type names one of them\."),
    "three weights for two": ({"weights": (1.0, 1.0, 1.0)}, None, "--weight: expected one for all or 2, one for each new score, found 3"),
    "no such feature": ({"feature": "X"}, None, "ini: expected one phrase dictionary named 'X', found 0"),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "table", "message"), REFUSED.values(), ids=REFUSED)
def test_refuses(folder, changes, table, message):
    if table:
        (folder / "scored").write_bytes(table)
    with pytest.raises(InputError, match=message):
        edit(table="scored", **changes)


def test_a_type_that_nothing_is_made_into(folder):
    (folder / "ini").write_text(INI.replace("PhraseDictionaryMemory", "Mmsapt"))
    with pytest.raises(InputError, match="ini:2: Mmsapt: expected a type that a text table is"):
        edit(table="scored")
