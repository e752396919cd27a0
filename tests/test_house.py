"""The house: which room may know which (docs/architecture.md), where its tests are, how long and by which names.

It is read from the source; what the package says of itself in words is read too.
"""

import ast
import itertools
import re
import statistics
import subprocess
import sys
from collections import Counter

import pytest

from tests.commands import ROOT
from tests.house import MODULES, PACKAGE, ROOMS, TESTS, in_one_line, parsed

WITHOUT_TENSORS = {"files", "formats", "moses", "tuning"}
TESTED_ELSEWHERE = {
    "analysis/choices.py",  # names alone; the options that offer them are tested in tests/cli/analyse
    "formats/ini_templates.py",  # what it prints is compared with moses_configs/ in tests/cli/test_ini.py
    "formats/runs.py",  # by what analysis/results makes of runs, in tests/analysis/test_results.py
    "pools/request.py",  # the same
    "scoring/request.py",  # records alone; what a run makes of them is in the tests of its neighbours
    "translation/extension/request.py",  # the same
}
TEST_FILES = sorted(TESTS.rglob("*.py"))
COMMANDS = (
    "train",
    "score",
    "merge",
    "validate",
    "ini",
    "verify",
    "cslm",
    "nbest",
    "analyse",
    "sample",
    "extend",
    "nmt",
    "tokenise",
    "pipeline",
    "import",
)
MODULES_OF = {"import": "import_weights"}  # where the command's name is a keyword


def room_of(path):
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def name_of(path):
    return str(path.relative_to(PACKAGE))


def imported(path):
    """Full names of everything a module imports."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module


def imported_modules(path, names):
    """The modules of the package that a module imports anywhere, for its types alone included."""
    for node in ast.walk(parsed(path)):
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
    assert rooms <= {room, "errors", "native", "files", *ROOMS[room]}


@pytest.mark.parametrize(
    "path", [m for m in MODULES if room_of(m) in WITHOUT_TENSORS], ids=lambda p: str(p.relative_to(PACKAGE))
)
def test_what_is_text_knows_no_tensors(path):
    assert not {name.split(".")[0] for name in imported(path)} & {"torch", "safetensors"}


@pytest.mark.parametrize("path", [m for m in MODULES if room_of(m) != "cli"], ids=lambda p: str(p.relative_to(PACKAGE)))
def test_only_the_command_line_knows_click(path):
    assert not {name.split(".")[0] for name in imported(path)} & {"click", "tqdm"}


def is_to_be_tested(path):
    return room_of(path) in ROOMS and path.name != "__init__.py" and name_of(path) not in TESTED_ELSEWHERE


@pytest.mark.parametrize("path", [m for m in MODULES if is_to_be_tested(m)], ids=lambda p: str(p.relative_to(PACKAGE)))
def test_each_module_has_its_tests(path):
    """In a file of its name or, if they are many, in a folder of its name."""
    place = TESTS / path.relative_to(PACKAGE)
    file = place.with_name(f"test_{path.name}")
    assert file.is_file() or any(place.with_suffix("").glob("test_*.py")), f"{file} is missing"


def imported_from_tests(path):
    """The parts of all names that a file imports from tests."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("tests."):
            yield from itertools.chain(node.module.split("."), (alias.name for alias in node.names))


@pytest.mark.parametrize("path", TEST_FILES, ids=lambda p: str(p.relative_to(TESTS)))
def test_no_tests_are_imported(path):
    assert not [name for name in imported_from_tests(path) if name.startswith("test_")]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example_and_needs_no_library(command):
    program = (
        "import sys\n"
        f"from moses_rnn.cli.{MODULES_OF.get(command, command)} import main\n"
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
    if (
        name_of(path) == "pools/ray_actors.py"
    ):  # which asks whether a cluster is there, before Ray would end the process
        return
    assert not {name.split(".")[0] for name in imported(path)} & NETWORK


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_nothing_of_the_package_runs_code_from_files(path):
    assert not {name.split(".")[0] for name in imported(path)} & {"pickle", "marshal", "shelve", "dill", "joblib"}
    called = {ast.unparse(node.func) for node in ast.walk(parsed(path)) if isinstance(node, ast.Call)}
    assert not called & {"eval", "exec", "compile", "torch.load", "numpy.load", "np.load", "__import__"}


# --- manners ------------------------------------------------------------------------------------------------------------

LONGEST_FILE = 330  # lines
PARTICIPLES = {"found", "told", "heard", "asked", "said"}  # say how a thing was come by, and not what it is
STILTED = (
    "gone on with",
    "lines that are none",
    "begins anew",
    "begin anew",
    "lets itself",
    "shows itself",
    "so many most frequent",
    "what of them the table has not",
    "nothing to say",
)
FOLDERS = [ROOT / name for name in ("moses_rnn", "docs", "moses_configs")]
TEXTS = [
    *(path for folder in FOLDERS for path in sorted(folder.rglob("*")) if path.suffix in {".py", ".md", ".mk"}),
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
]


def functions(path):
    return [node for node in ast.walk(parsed(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def length(node):
    """Lines of a statement."""
    return node.end_lineno - node.lineno + 1


def length_without_docstring(function):
    return length(function) - (length(function.body[0]) if ast.get_docstring(function) else 0)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_no_file_is_long(path):
    assert path.read_text(encoding="utf-8").count("\n") <= LONGEST_FILE


def test_functions_are_short():
    lengths = sorted(length_without_docstring(function) for path in MODULES for function in functions(path))
    assert statistics.median(lengths) < 10
    assert lengths[len(lengths) * 9 // 10] <= 25


def names_given(tree):
    """Every name of a function, a parameter or a variable, with its node."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node
        elif isinstance(node, ast.arg):
            yield node.arg, node
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node


def is_about_errors(function):
    """Whether a function puts what it calls `found` into an error: "expected …, found …"."""
    calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
    errors = [call for call in calls if re.search(r"(Error|\.error|super\(\)\.__init__)$", ast.unparse(call.func))]
    return "found" in {node.id for error in errors for node in ast.walk(error) if isinstance(node, ast.Name)}


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_results_are_named_by_nouns(path):
    allowed = {
        (node.lineno, node.col_offset)
        for function in functions(path)
        if is_about_errors(function)
        for node in ast.walk(function)
        if isinstance(node, ast.arg | ast.Name)
    }
    named = [(name, node.lineno, node.col_offset) for name, node in names_given(parsed(path)) if name in PARTICIPLES]
    assert not [place for place in named if place[0] != "found" or place[1:] not in allowed]


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_stilted_phrase_stands_anywhere(path):
    text = in_one_line(path)
    assert not [phrase for phrase in STILTED if phrase in text]
