"""An ini for another table, another type, other weights, other paths."""

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
    (folder / "ini").write_text(INI.replace("/old/t", "t"))
    assert edit().warnings == ("relative paths (t): run Moses in their folder, or give --absolute-paths",)
    edited = edit(absolute_paths=True)
    assert edited.content.decode() == INI.replace("/old/t", f"{folder}/t")
    assert edited.warnings == ()


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
