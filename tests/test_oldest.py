"""Lower bounds of requirements, and the target that tests them."""

import re
import subprocess
import sys
import tomllib

import pytest

from tests.commands import ROOT
from tests.oldest import lowest, main

pytestmark = pytest.mark.release

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_every_requirement_of_the_package_has_a_lower_bound():
    versions = lowest(PROJECT)
    for text in PROJECT["dependencies"]:
        assert re.match(r"[\w.-]+", text)[0] in versions


def test_the_versions_that_were_tested_together_are_allowed():
    tested = dict(re.findall(r"^([\w.-]+)==([\d.]+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    for name, version in lowest(PROJECT).items():
        if name in tested:
            assert [*map(int, tested[name].split("."))] >= [*map(int, version.split("."))]


def test_another_version_takes_the_place_of_the_lowest(capsys):
    main("torch==9.9")
    printed = capsys.readouterr().out.splitlines()
    assert "torch==9.9" in printed
    assert f"numpy=={lowest(PROJECT)['numpy']}" in printed
    with pytest.raises(SystemExit, match="nonsense: expected one of torch"):
        main("nonsense==1")


def test_two_bounds_of_a_name_are_an_error():
    with pytest.raises(ValueError, match="x: expected one lower bound, found 1 and 2"):
        lowest({"dependencies": ["x>=1"], "optional-dependencies": {"more": ["x>=2", "y"]}})


def test_the_target_installs_them_and_runs_the_quick_tests(tmp_path):
    """A dry run: it installs nothing."""
    command = ["make", "-n", "-C", ROOT, "test-oldest", f"OLDEST={tmp_path}/old", "OLDEST_GIVEN=torch==2.13.0"]
    done = subprocess.run([*command, f"OLDEST_PYTHON={sys.executable}"], capture_output=True, text=True, check=True)
    assert f"{sys.executable} tests/oldest.py torch==2.13.0 > {tmp_path}/old/constraints.txt" in done.stdout
    assert "not moses and not gpu and not slow" in done.stdout
    assert not list(tmp_path.iterdir())
