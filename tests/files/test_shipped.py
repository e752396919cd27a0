import tomllib

import pytest

from moses_rnn.files import shipped
from moses_rnn.files.shipped import shipped_file
from tests.commands import ROOT


def test_a_clone_has_the_folder_beside_the_package():
    assert shipped_file("pipeline.mk") == ROOT / "moses_configs" / "pipeline.mk"


def test_an_installed_package_has_it_inside(tmp_path, monkeypatch):
    monkeypatch.setattr(shipped, "FOLDERS", (tmp_path, *shipped.FOLDERS))
    (tmp_path / "pipeline.mk").touch()
    assert shipped_file("pipeline.mk") == tmp_path / "pipeline.mk"
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["force-include"] == {"moses_configs": "moses_rnn/moses_configs"}


def test_a_file_that_is_nowhere_is_named():
    with pytest.raises(FileNotFoundError, match="^nothing: not in .*moses_rnn/moses_configs nor in .*/moses_configs$"):
        shipped_file("nothing")
