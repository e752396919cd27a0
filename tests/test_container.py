"""moses_configs/Containerfile: what it copies and runs is there; where a builder runs, it is built."""

import re
import shlex
import shutil
import subprocess

import pytest

from tests.commands import ROOT

pytestmark = pytest.mark.release

PATH = ROOT / "moses_configs" / "Containerfile"
TEXT = re.sub(r"^#.*\n", "", PATH.read_text(encoding="utf-8"), flags=re.MULTILINE).replace("\\\n", " ")
BUILDERS = ("podman", "docker", "buildah")


def arguments_of(instruction):
    return re.findall(rf"^{instruction} +(.*)", TEXT, re.MULTILINE)


def test_what_it_copies_is_what_the_package_is_built_of():
    copied = {name for words in arguments_of("COPY") if "--from" not in words for name in words.split()[:-1]}
    package = {"pyproject.toml", "README.md", "LICENSE", "native", "moses_rnn", "moses_configs", "constraints.txt"}
    assert copied == package
    assert all((ROOT / name).exists() for name in copied)


@pytest.mark.parametrize("script", arguments_of("RUN"), ids=lambda text: text[:20])
def test_every_script_is_one(script):
    done = subprocess.run(
        [shutil.which("dash") or "sh", "-n"], input=script, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def working_builder():
    """A program that builds images and can do so here; None if there is none."""
    for name in BUILDERS:
        if shutil.which(name) and subprocess.run([name, "info"], capture_output=True, check=False).returncode == 0:
            return name
    return None


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_an_image_is_built_and_has_both():
    builder = working_builder()
    if builder is None:
        pytest.skip(f"no {' or '.join(BUILDERS)} that works here")
    subprocess.run([builder, "build", "-f", PATH, "-t", "moses-rnn-test", ROOT], check=True)
    if builder != "buildah":
        run = shlex.split(f"{builder} run --rm moses-rnn-test moses-rnn-score --version")
        assert "moses-rnn-score, version" in subprocess.run(run, capture_output=True, text=True, check=True).stdout
