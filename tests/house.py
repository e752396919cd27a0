"""The rooms of the package with what each may know, its files, and the tests that a file holds, read from the source."""

import ast
import re

from tests.commands import ROOT

PACKAGE = ROOT / "moses_rnn"
MODULES = sorted(PACKAGE.rglob("*.py"))
TESTS = ROOT / "tests"
ROOMS = {
    "files": set(),
    "formats": set(),
    "models": set(),
    "inference": {"models"},
    "producers": {"inference", "models", "formats"},
    "training": {"models", "formats"},
    "moses": {"formats"},
    "pools": set(),
    "scoring": {"producers", "moses", "formats", "pools"},
    "tuning": {"moses", "formats"},
    "translation": {"pools", "producers", "inference", "models", "formats"},
    "analysis": {"translation", "tuning", "producers", "inference", "models", "formats"},
    "api": {"analysis", "translation", "scoring", "pools", "producers", "inference", "models", "formats"},
}
ROOMS["cli"] = {*ROOMS}


def parsed(path):
    """The syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def names_in(path):
    """The tests of a file, by its path from the root."""
    tree = parsed(ROOT / path)
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def in_one_line(path):
    """A text without line ends, nor the marks that stand there of comments and of strings that go on."""
    text = path.read_text(encoding="utf-8")
    return " ".join(re.sub(r'"\s*\n\s*f?"|\n\s*#', "", text).split()).lower()
