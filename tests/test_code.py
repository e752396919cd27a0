"""Promises that the code keeps by what it imports: which package may use which, help without torch, no pickle, no network."""

import ast
import re
import subprocess
import sys

from tests.commands import ROOT

PACKAGE = ROOT / "moses_rnn"
MODULES = {path.relative_to(PACKAGE): ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")}
# Each may import those before it, and always `errors`, `native`, `options` and `version`.
PACKAGES = [
    "files",
    "table",
    "moses",
    "networks",
    "models",
    "score",
    "training",
    "translation",
    "nbest",
    "analysis",
    "api",
    "cli",
]
TEXT_ALONE = {"files", "table", "moses", "nbest"}
RUNS_CODE = {"pickle", "marshal", "shelve", "dill", "joblib"}
NETWORK = {"socket", "ssl", "http", "urllib", "requests", "ftplib", "smtplib", "asyncio", "xmlrpc"}
ONLINE = {"score/ray_tasks.py", "moses/decoding.py", "nbest/serving.py"}  # looks for a cluster, is a client, a server
CALLS = {"eval", "exec", "compile", "torch.load", "numpy.load", "np.load", "__import__"}


def imports(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


def test_packages_import_what_they_may():
    wrong = []
    for path, tree in MODULES.items():
        package = path.parts[0]
        names = [*imports(tree)]
        libraries = {name.split(".")[0] for name in names}
        forbidden = RUNS_CODE | (NETWORK if str(path) not in ONLINE else set())
        forbidden |= {"torch", "safetensors"} if package in TEXT_ALONE else set()
        forbidden |= {"click", "tqdm"} if package != "cli" else set()
        wrong += [f"{path}: {name}" for name in libraries & forbidden]
        if package in PACKAGES:
            wrong += [f"{path}: moses_rnn" for name in names if name == "moses_rnn"]
            own = {name.split(".")[1] for name in names if name.startswith("moses_rnn.")}
            later = PACKAGES[PACKAGES.index(package) + 1 :]
            wrong += [f"{path}: {name}" for name in own.intersection(later)]
        calls = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        wrong += [f"{path}: {name}()" for name in calls & CALLS]
    assert not wrong


def test_no_two_files_import_each_other():
    imported = {}
    for path, tree in MODULES.items():
        nodes = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        names = {node.module for node in nodes} | {
            f"{node.module}.{alias.name}" for node in nodes for alias in node.names
        }
        imported[path.with_suffix("").as_posix()] = {
            name.removeprefix("moses_rnn.").replace(".", "/") for name in names if name.startswith("moses_rnn.")
        }
    pairs = {(one, other) for one, names in imported.items() for other in names if one < other}
    assert not {(one, other) for one, other in pairs if one in imported.get(other, ())}


def test_no_pattern_repeats_a_group_possessively():
    """Such groups match wrongly before Python 3.11.5 (python/cpython#106052); atomic ones, `(?>(...)*)`, match rightly."""
    possessive = re.compile(r"(?<!\\)\)(?:[*+?]|\{[\d,]+\})\+")
    for path, tree in MODULES.items():
        texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
        texts = [text.decode("latin-1") if isinstance(text, bytes) else text for text in texts]
        assert not [text for text in texts if isinstance(text, str) and possessive.search(text)], path


def test_help_of_every_command_has_an_example_and_needs_no_library():
    program = """
import sys
from moses_rnn.cli.main import main
from click import Context

def helps(command, *words):
    context = Context(main)
    names = command.list_commands(context) if hasattr(command, "list_commands") else []
    try:
        main([*words, "--help"], prog_name="moses-rnn")
    except SystemExit as end:
        assert end.code == 0, end.code
    print(end="\\0")
    for name in names:
        helps(command.get_command(context, name), *words, name)

helps(main)
assert not {"torch", "numpy", "matplotlib", "sklearn"} & sys.modules.keys()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    texts = done.stdout.split("\0")[:-1]
    assert len(texts) > 30
    for text in texts:
        assert re.match(r"Usage: moses-rnn", text), text[:200]
        assert re.search(r"\n +moses-rnn", text.partition("Example")[2]), text[:200]


def test_every_promise_names_tests_that_exist():
    text = (
        (ROOT / "docs" / "files.md").read_text(encoding="utf-8").partition("## Promises")[2].partition("## Faults")[0]
    )
    rows = re.split(r"\n\d+\. ", text)[1:]
    assert len(rows) > 7
    for row in rows:
        path, named = None, re.findall(r"`(tests/[\w/]+\.py)?:{0,2}(test_\w+)`", row)
        assert named, row
        for before, name in named:
            path = before or path
            assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), f"{path}::{name}"
