import tomllib

import pytest

from moses_rnn.files import shipped
from moses_rnn.files.shipped import shipped_file
from tests.commands import ROOT


def test_an_installed_package_has_its_files_inside_and_a_clone_beside_it(tmp_path, monkeypatch):
    assert shipped_file("pipeline.mk") == ROOT / "moses_configs" / "pipeline.mk"
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["force-include"] == {"moses_configs": "moses_rnn/moses_configs"}
    monkeypatch.setattr(shipped, "FOLDERS", (tmp_path, *shipped.FOLDERS))
    (tmp_path / "pipeline.mk").touch()
    assert shipped_file("pipeline.mk") == tmp_path / "pipeline.mk"
    with pytest.raises(FileNotFoundError, match="^nothing: not in .*moses_rnn/moses_configs nor in .*/moses_configs$"):
        shipped_file("nothing")
