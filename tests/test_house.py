"""The house: which room may know which (docs/architecture.md), read from the import statements."""

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "moses_rnn"
ROOMS = {
    "files": set(),
    "formats": set(),
    "models": set(),
    "inference": {"models"},
    "producers": {"inference", "models", "formats"},
    "training": {"models", "formats"},
    "moses": {"formats"},
    "scoring": {"producers", "moses", "formats"},
    "tuning": {"moses", "formats"},
    "translation": {"producers", "inference", "models", "formats"},
    "analysis": {"translation", "tuning", "producers", "inference", "models", "formats"},
}
ROOMS["cli"] = {*ROOMS}
WITHOUT_TENSORS = {"files", "formats", "moses", "tuning"}
MODULES = sorted(PACKAGE.rglob("*.py"))
TESTS = Path(__file__).parent
# rooms of which each module has a tests' file of its own; to be extended until they are all
WITH_TESTS = {"files", "formats", "moses", "tuning"}
TESTED_ELSEWHERE = {
    "formats/ini_templates.py",  # what it prints is compared with moses_configs/ in tests/cli/test_ini.py
    "formats/runs.py",  # by what analysis/results makes of runs, in tests/analysis/test_results.py
}
IMPORTING_TESTS = {"moses/test_nbest_rescore.py"}  # until the models of n-best lists are a helper
TEST_FILES = sorted(file for room in WITH_TESTS | {"faults", "fuzz"} for file in (TESTS / room).rglob("*.py"))
COMMANDS = ("train", "score", "validate", "ini", "verify", "cslm", "nbest", "analyse", "sample", "tokenise", "pipeline")


def room_of(path):
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def name_of(path):
    return str(path.relative_to(PACKAGE))


def imported(path):
    """Full names of everything a module imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module


def imported_modules(path, names):
    """The modules of the package that a module imports anywhere, for its types alone included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            inside = {f"{node.module}.{alias.name}" for alias in node.names} & names.keys()
            yield from inside or {node.module} & names.keys()


def test_no_modules_import_each_other_in_a_circle():
    names = {".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path for path in MODULES}
    waiting = {
        name: {other for other in imported_modules(path, names) if other != name} for name, path in names.items()
    }
    assert "moses_rnn.scoring.inputs" in waiting["moses_rnn.scoring.run"]
    while free := {name for name, others in waiting.items() if not others}:
        waiting = {name: others - free for name, others in waiting.items() if name not in free}
    assert waiting == {}


def test_no_room_is_more_than_a_fifth_of_the_house():
    rooms = Counter()
    for path in MODULES:
        rooms[room_of(path)] += path.read_text(encoding="utf-8").count("\n")
    assert max(rooms.values()) <= 0.2 * rooms.total(), rooms


@pytest.mark.parametrize(
    "path",
    [m for m in MODULES if room_of(m) in ROOMS],
    ids=lambda p: str(p.relative_to(PACKAGE)),
)
def test_no_room_visits_its_neighbours(path):
    room = room_of(path)
    rooms = {name.split(".")[1] for name in imported(path) if name.startswith("moses_rnn.")}
    assert rooms <= {room, "errors", "files", *ROOMS[room]}


@pytest.mark.parametrize(
    "path", [m for m in MODULES if room_of(m) in WITHOUT_TENSORS], ids=lambda p: str(p.relative_to(PACKAGE))
)
def test_what_is_text_knows_no_tensors(path):
    assert not {name.split(".")[0] for name in imported(path)} & {"torch", "safetensors"}


@pytest.mark.parametrize("path", [m for m in MODULES if room_of(m) != "cli"], ids=lambda p: str(p.relative_to(PACKAGE)))
def test_only_the_command_line_knows_click(path):
    assert not {name.split(".")[0] for name in imported(path)} & {"click", "tqdm"}


def is_to_be_tested(path):
    return room_of(path) in WITH_TESTS and path.name != "__init__.py" and name_of(path) not in TESTED_ELSEWHERE


@pytest.mark.parametrize("path", [m for m in MODULES if is_to_be_tested(m)], ids=lambda p: str(p.relative_to(PACKAGE)))
def test_each_module_has_its_tests(path):
    file = TESTS / path.relative_to(PACKAGE).with_name(f"test_{path.name}")
    assert file.is_file(), f"{file} is missing"


@pytest.mark.parametrize(
    "path",
    [f for f in TEST_FILES if str(f.relative_to(TESTS)) not in IMPORTING_TESTS],
    ids=lambda p: str(p.relative_to(TESTS)),
)
def test_no_tests_are_imported(path):
    modules = {name.rpartition(".")[2] for name in imported(path) if name.startswith("tests.")}
    assert not {name for name in modules if name.startswith("test_")}


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example_and_needs_no_library(command):
    program = (
        "import sys\n"
        f"from moses_rnn.cli.{command} import main\n"
        f"sys.argv = ['moses-rnn-{command}']\n"
        "names = [[name] for name in getattr(main, 'commands', ())]\n"
        "for words in ['--version'], *([*name, flag] for name in ([], *names) for flag in ('-h', '--help')):\n"
        "    try: main(words)\n"
        "    except SystemExit as end: assert end.code == 0, end.code\n"
        "    print(end='\\0')\n"
        "assert not {'torch', 'numpy', 'matplotlib', 'sklearn'} & sys.modules.keys()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    version, *helps, after = done.stdout.split("\0")
    assert (version.count("\n"), after) == (1, "")
    assert helps[::2] == helps[1::2]
    for text in helps:
        assert text.startswith(f"Usage: moses-rnn-{command} ")
        assert f"  moses-rnn-{command} " in text.partition("Example")[2]


NETWORK = {"socket", "ssl", "http", "urllib", "requests", "ftplib", "smtplib", "asyncio", "xmlrpc"}


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_nothing_of_the_package_knows_a_network(path):
    assert not {name.split(".")[0] for name in imported(path)} & NETWORK


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_nothing_of_the_package_runs_code_from_files(path):
    assert not {name.split(".")[0] for name in imported(path)} & {"pickle", "marshal", "shelve", "dill", "joblib"}
    called = {ast.unparse(node.func) for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)}
    assert not called & {"eval", "exec", "compile", "torch.load", "numpy.load", "np.load", "__import__"}
