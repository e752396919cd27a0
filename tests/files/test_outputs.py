import os
import stat
from pathlib import Path

import pytest
from xopen import xopen

from moses_rnn.errors import OutputError
from moses_rnn.files.outputs import OutputFile, output_files, replace_file
from moses_rnn.files.resumable import ResumableOutputs

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


def test_a_run_that_dies_between_two_names_leaves_no_table_without_its_signature(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    publish = OutputFile.publish

    def publish_and_die(file):
        publish(file)
        raise KeyboardInterrupt

    monkeypatch.setattr(OutputFile, "publish", publish_and_die)
    files = output_files(["t.gz", "t.gz.json"])
    files.__enter__()
    with pytest.raises(KeyboardInterrupt):
        files.__exit__(None, None, None)
    assert os.listdir() == ["t.gz.json"]


@pytest.mark.parametrize("mode", [0o640, 0o600, 0o444, 0o664])
@pytest.mark.parametrize("names", [["t"], ["t.gz", "t.gz.json"]], ids=" ".join)
def test_what_is_replaced_keeps_its_permissions(tmp_path, monkeypatch, names, mode):
    monkeypatch.chdir(tmp_path)
    for name in names:
        Path(name).write_bytes(b"old")
        Path(name).chmod(mode)
    with output_files(names, force=True) as files:
        for file in files:
            file.append(TEXT)
    Path("new").touch()
    default = Path("new").stat().st_mode
    with ResumableOutputs(["grown", *names], ["small"], force=True) as outputs:
        outputs.begin({})
        outputs.commit({"small": TEXT})
    replace_file(Path(names[0]), TEXT)
    assert {stat.S_IMODE(Path(name).stat().st_mode) for name in names} == {mode}
    assert {Path(name).stat().st_mode for name in ("grown", "small")} == {default}
