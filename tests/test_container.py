"""moses_configs/Containerfile: read as a builder reads it; where one runs, built."""

import re
import shlex
import shutil
import subprocess

import pytest

from tests.commands import ROOT

pytestmark = pytest.mark.release

PATH = ROOT / "moses_configs" / "Containerfile"
INSTRUCTIONS = {"ARG", "FROM", "RUN", "COPY", "ENV", "WORKDIR", "CMD"}
BUILDERS = ("podman", "docker", "buildah")


def instructions():
    """Of each instruction its name and its arguments, in one line."""
    text = re.sub(r"^#.*\n", "", PATH.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for line in text.replace("\\\n", " ").splitlines():
        if line.strip():
            name, _, arguments = line.partition(" ")
            yield name, " ".join(arguments.split())


def of(name):
    return [arguments for instruction, arguments in instructions() if instruction == name]


def copies():
    """Of each COPY the stage it copies from (or None), its sources and its place."""
    for arguments in of("COPY"):
        words = arguments.split()
        stage = words.pop(0).partition("=")[2] if words[0].startswith("--from=") else None
        yield stage, words[:-1], words[-1]


def test_it_has_instructions_that_are_known_and_two_stages():
    assert {name for name, _ in instructions()} <= INSTRUCTIONS
    first, *_ = instructions()
    assert first[0] == "ARG"  # before FROM, so that both stages have it
    stages = of("FROM")
    assert stages == ["${DEBIAN} AS moses", "${DEBIAN}"]


def test_every_copied_file_is_there_and_every_stage_is_one():
    for stage, sources, place in copies():
        assert place.startswith("/opt/")
        for source in sources:
            assert stage == "moses" if stage else (ROOT / source).exists(), source


def test_what_the_package_needs_to_be_built_is_copied():
    """What hatchling reads, by pyproject.toml."""
    copied = {source for stage, sources, _ in copies() if stage is None for source in sources}
    assert {
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "native",
        "moses_rnn",
        "moses_configs",
        "constraints.txt",
    } == copied


def test_every_variable_that_is_used_is_declared():
    declared = {"nproc"} | {argument.partition("=")[0] for argument in of("ARG")}
    declared |= set(re.findall(r"(\w+)=", " ".join(of("ENV")))) | {"program", "PATH"}
    used = re.findall(r"\$\{?(\w+)", " ".join(arguments for _, arguments in instructions()))
    assert set(used) <= declared | {"nproc"}


@pytest.mark.parametrize("script", of("RUN"), ids=lambda text: text[:20])
def test_every_script_is_one(script):
    shell = shutil.which("dash") or "sh"
    done = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_its_commands_are_installed():
    scripts = set(re.findall(r"^(moses-rnn[\w-]*) = ", (ROOT / "pyproject.toml").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?<![\w/.])moses-rnn[\w-]*(?= )", " ".join([*of("RUN"), *of("CMD")])))
    text = PATH.read_text(encoding="utf-8") + (ROOT / "docs" / "first-system.md").read_text(encoding="utf-8")
    named |= set(re.findall(r"run --rm .*? moses-rnn (moses-rnn[\w-]*)", text))
    assert {"moses-rnn", "moses-rnn-train"} <= named
    assert named <= scripts


def test_the_extras_that_it_installs_are_declared():
    (extras,) = re.findall(r"/opt/moses-rnn\[([\w,]+)\]", PATH.read_text(encoding="utf-8"))
    declared = (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition("[project.optional-dependencies]")[2]
    for extra in extras.split(","):
        assert re.search(rf"^{extra} = ", declared, re.MULTILINE)


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
