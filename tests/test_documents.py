"""What the documents say about tests and commands is so."""

import ast
import re

import pytest

from tests.commands import ROOT

FAULTS = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
REFERENCE = re.compile(r"`(tests/[\w/]+\.py)?::(\w+)`")


def names_in(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def references(text):
    """All tests named in a text; ``::test_x`` belongs to the file named before it."""
    path = None
    for found in REFERENCE.finditer(text):
        path = found.group(1) or path
        yield path, found.group(2)


def rows():
    return [line for line in FAULTS.splitlines() if re.match(r"\| \d+b? \|", line)]


def test_all_faults_are_listed():
    assert [row.split("|")[1].strip() for row in rows() if "b" not in row.split("|")[1]] == [
        str(i) for i in range(1, 50)
    ]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.split("|")[1].strip())
def test_every_fault_names_tests_that_exist(row):
    named = list(references(row))
    assert named
    for path, name in named:
        assert name in names_in(path), f"{path}::{name}"


def test_every_promise_of_the_readme_names_tests_that_exist():
    promises = README.split("## What it promises")[1].split("\n## ")[0]
    numbered = re.split(r"\n\d\. ", promises)[1:]
    assert len(numbered) == 8
    for promise in numbered:
        links = re.findall(r"\]\((tests/[\w/]+\.py)\)", promise)
        named = re.findall(r"\[`(\w+)`\]\((tests/[\w/]+\.py)\)", promise)
        assert named
        assert len(links) == len(named)
        for name, path in named:
            assert name in names_in(path), f"{path}::{name}"
