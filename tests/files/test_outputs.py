import os

import pytest
from xopen import xopen

from moses_rnn.errors import OutputError
from moses_rnn.files.outputs import OutputFile

TEXT = b"un\ndeux\n"


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_writes_by_suffix_and_only_on_commit(tmp_path, suffix):
    path = tmp_path / f"t{suffix}"
    with OutputFile(str(path)) as output:
        assert not path.exists()
        output.commit(TEXT)
    with xopen(path, "rb") as file:
        assert file.read() == TEXT
    assert os.listdir(tmp_path) == [path.name]


def test_without_commit_nothing_stays(tmp_path):
    (tmp_path / "t.gz").write_bytes(b"old")
    with OutputFile(str(tmp_path / "t.gz"), force=True):
        assert len(os.listdir(tmp_path)) == 2
    assert os.listdir(tmp_path) == ["t.gz"]
    assert (tmp_path / "t.gz").read_bytes() == b"old"


@pytest.mark.parametrize("spelling", ["t", "./t", "link", "hard", "sub/../t"])
def test_refuses_its_input_by_any_spelling(tmp_path, spelling):
    (tmp_path / "t").write_bytes(b"input")
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to("t")
    (tmp_path / "hard").hardlink_to(tmp_path / "t")
    with pytest.raises(OutputError, match="is the input .*/t itself; name another output"):
        OutputFile(f"{tmp_path}/{spelling}", force=True, inputs=(str(tmp_path / "t"),))


def test_two_runs_cannot_write_one_file(tmp_path):
    with OutputFile(str(tmp_path / "t")), pytest.raises(OutputError, match="t: is being written by another run"):
        OutputFile(str(tmp_path / "t"))
