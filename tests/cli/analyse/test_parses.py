"""moses-rnn-analyse parses: its tables."""

import pytest

from moses_rnn.formats.conllu import format_conllu
from tests.cli.analyse.calls import invoke
from tests.formats.random_dependencies import sentence

TREES = b"(S (NP (DT a) (NN dog)) (VP (VBZ barks)))\n(S (VP (VB stop)))\n"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.trees").write_bytes(TREES)
    (tmp_path / "t.conllu").write_bytes(format_conllu(sentence((2, 0))) + format_conllu(sentence((0,))))
    (tmp_path / "a.brackets").write_bytes(b"(S (NP XX XX )NP (VP XX )VP )S\n(S (VP XX\n")
    (tmp_path / "b.brackets").write_bytes(b"\n\n")
    (tmp_path / "a.actions").write_bytes(b"SH SH LA:r1 RA:r2\nSH\n")
    (tmp_path / "blank").write_bytes(b"\n")
    (tmp_path / "short").write_bytes(b"SH\n")
    return tmp_path


def test_brackets():
    rows = invoke("parses", "t.trees", "a.brackets", "b.brackets", "--format", "csv").stdout.splitlines()
    assert rows == [
        "system,malformed,precision,recall,F1,whole trees",
        "a.brackets,50.00,100.00,100.00,100.00,100.00",
        "b.brackets,100.00,,0.00,0.00,0.00",
        "root alone,0.00,100.00,40.00,57.14,0.00",
        "right-branching,0.00,66.67,40.00,50.00,0.00",
    ]


def test_attachments():
    rows = invoke("parses", "t.conllu", "a.actions", "--format", "csv").stdout.splitlines()
    assert rows == [
        "system,malformed,skipped,left over,UAS,LAS,whole trees",
        "a.actions,50.00,0,1,100.00,66.67,50.00",
        "on the word before,0.00,0,0,33.33,0.00,0.00",
        "on the next word,0.00,0,0,100.00,66.67,50.00",
    ]
    assert "3 words in 2 sentences" in invoke("parses", "t.conllu", "a.actions").stdout
