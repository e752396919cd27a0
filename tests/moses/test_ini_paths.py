"""Which words of an ini are paths, and where they lead."""

import pytest

from moses_rnn.errors import FormatError
from moses_rnn.moses.ini_editing import IniEdit, edit_ini

# In the ini's folder: model/top.en, model/table.gz, list.txt, words; where the command runs: here/lm.gz.
# `@` stands for the ini's folder, `~` for the other one.
MADE_ABSOLUTE = {
    "[feature]\nKENLM path=none/lm.gz": "[feature]\nKENLM path=@none/lm.gz",
    "[feature]\nKENLM path=here/lm.gz": "[feature]\nKENLM path=~here/lm.gz",
    "[feature]\nKENLM path=here/lm # a/b": "[feature]\nKENLM path=~here/lm # a/b",  # Moses finds lm.gz
    "[feature]\nKENLM path=lm.gz\r": "[feature]\nKENLM path=@lm.gz\r",
    "[feature]\nT path=/a/link/../b other-path=/corpus/": "[feature]\nT path=/a/link/../b other-path=/corpus/",
    "[feature]\nT path=/a lex-e2f=a,/b,c lex-f2e=a": "[feature]\nT path=/a lex-e2f=@a,/b,@c lex-f2e=@a",
    "[feature]\nT path=a,b/t": "[feature]\nT path=@a,b/t",
    "[feature]\nConstrainedDecoding path=list.txt,words": "[feature]\nConstrainedDecoding path=@list.txt,@words",
    "[feature]\nT source-path=a  target-path=b": "[feature]\nT source-path=@a  target-path=@b",
    "[feature]\nLexicalReordering sparse-words-source-topn=top sparse-phrase=1": (
        "[feature]\nLexicalReordering sparse-words-source-topn=@top sparse-phrase=1"
    ),
    "[feature]\nBleuScoreFeature references=a,b": "[feature]\nBleuScoreFeature references=@a,@b",
    "[feature]\nX source=model/top.en factor=0": "[feature]\nX source=@model/top.en factor=0",
    "[feature]\nNew my-own=list.txt": "[feature]\nNew my-own=@list.txt",
    "[feature-overwrite]\nLM0 path=lm": "[feature-overwrite]\nLM0 path=@lm",
    "[alternate-weight-setting]\nid=a weight-file=w": "[alternate-weight-setting]\nid=a weight-file=@w",
    "[weight-file]\n  sparse weights": "[weight-file]\n  @sparse weights",
    "[unknown-lhs]\nlhs": "[unknown-lhs]\n@lhs",
    "[feature]\nKENLM path=near.lm": "[feature]\nKENLM path=~near.lm",  # ini/near.lm.old is another file
    "[feature]\nLexicalReordering path=reo": "[feature]\nLexicalReordering path=@reo",  # ini/reo.minlexr, not here/reo
}
NO_PATHS = [
    "[feature]\nNew my-own=none/t.txt",  # nothing is there
    "[feature]\nNew my-own=words",  # may be a word
    "[translation-details]\nout/details",
    "[feature]\nT name=words num-features=4 lambda=0.2,0.8 path= mode=a source=0",
    "[feature]\nMmsapt path=/a bias=http://a/b",
    "[mapping]\n0 T 0\n[weight]\nwords= 1",
    "[n-best-list]\nnbest\n100",
    "# model/table.gz\n[input-factors]\n0\n",
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    names = ["model/top.en", "model/table.gz", "list.txt", "words", "near.lm.old", "reo.minlexr"]
    for name in (*(f"ini/{name}" for name in names), "cwd/here/lm.gz", "cwd/near.lm", "cwd/reo"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path / "cwd")
    return tmp_path


def place(folder, text, *, absolute):
    ini = folder / "ini" / "moses.ini"
    ini.write_bytes(text.encode())
    new = edit_ini(IniEdit(ini=str(ini), absolute_paths=absolute))
    return new.content, new.warnings


@pytest.mark.parametrize(("text", "expected"), MADE_ABSOLUTE.items(), ids=[text.split()[1] for text in MADE_ABSOLUTE])
def test_paths_become_absolute(folder, text, expected):
    new, warnings = place(folder, text, absolute=True)
    assert new.decode() == expected.replace("@", f"{folder}/ini/").replace("~", f"{folder}/cwd/")
    assert all("not found" in warning for warning in warnings)
    assert place(folder, new.decode(), absolute=True) == (new, ())


def test_a_path_that_leads_nowhere_is_named(folder):
    text = "[feature]\nKENLM path=here/lm.gz\nKENLM path=here/lm2.gz\nKENLM path=list.txt"
    assert [warning.count("here/lm2.gz") for warning in place(folder, text, absolute=True)[1]] == [1]


@pytest.mark.parametrize("text", NO_PATHS)
def test_what_is_no_path_stays(folder, text):
    assert place(folder, text, absolute=True) == (text.encode(), ())


def test_relative_paths_are_kept_and_named(folder):
    text = "[feature]\nKENLM path=lm.gz\n[weight-file]\nsparse"
    new, (warning,) = place(folder, text, absolute=False)
    assert new.decode() == text
    assert "relative paths (lm.gz, sparse)" in warning


def test_a_folder_that_moses_cannot_read_is_refused(tmp_path):
    (tmp_path / "a b" / "ini").mkdir(parents=True)
    with pytest.raises(FormatError, match=r"ini/moses.ini:2: expected a path that Moses can read .*\n  Move"):
        place(tmp_path / "a b", "[feature]\nKENLM path=lm", absolute=True)
