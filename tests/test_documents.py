"""What the documents say about tests, rooms and each other is so; their commands are in test_documented_commands.py."""

import re
from importlib.util import module_from_spec, spec_from_file_location

import pytest

from tests.commands import ROOT
from tests.house import MODULES, PACKAGE, ROOMS, in_one_line, names_in

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(DOCS.glob("*.md"))]
FAULTS = (DOCS / "faults.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
REFERENCE = re.compile(r"`(tests/[\w/]+\.py)?::(\w+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")


def references(text):
    """All tests named in a text; ``::test_x`` belongs to the file named before it."""
    path = None
    for reference in REFERENCE.finditer(text):
        path = reference.group(1) or path
        yield path, reference.group(2)


def rows():
    return [line for line in FAULTS.splitlines() if re.match(r"\| \d+b? \|", line)]


def test_all_faults_are_listed():
    assert [row.split("|")[1].strip() for row in rows() if "b" not in row.split("|")[1]] == [
        str(i) for i in range(1, 61)
    ]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.split("|")[1].strip())
def test_every_fault_names_tests_that_exist(row):
    named = list(references(row))
    assert named
    for path, name in named:
        assert name in names_in(path), f"{path}::{name}"


def test_every_promise_names_tests_that_exist():
    promises = re.split(r"\n\d\. ", (DOCS / "promises.md").read_text(encoding="utf-8"))[1:]
    assert len(promises) == 8
    for promise in promises:
        links = re.findall(r"\]\(\.\./(tests/[\w/]+\.py)\)", promise)
        named = re.findall(r"\[`(\w+)`\]\(\.\./(tests/[\w/]+\.py)\)", promise)
        assert named
        assert len(links) == len(named)
        for name, path in named:
            assert name in names_in(path), f"{path}::{name}"


def messages():
    """The messages that docs/troubleshooting.md explains."""
    text = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
    return re.findall(r"^\| `(.*?)` \|", text, re.MULTILINE)


def test_every_message_that_is_explained_is_one_of_the_package():
    said = " ".join(map(in_one_line, MODULES))
    assert len(messages()) > 25
    for message in messages():
        for part in message.replace("\\|", "|").lower().split("…"):
            assert part.strip().removeprefix("expected ") in said, message  # which some errors put before it


# --- the table of rooms -------------------------------------------------------------------------------------------------


def rooms():
    """Of each row of docs/architecture.md that begins with a folder: its modules and the rooms that it uses."""
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    for room, holds, uses in re.findall(r"^\| `(\w+)/` \|[^|]*\|([^|]*)\|([^|]*)\|$", text, re.MULTILINE):
        yield room, re.findall(r"`([\w/]+)`", holds), uses.strip()


def test_the_table_has_the_rooms_and_what_they_may_use():
    every = ", ".join(ROOMS["cli"])
    used = {room: uses.replace("–", "").replace("all", every) for room, _, uses in rooms()}
    assert {room: {*filter(None, uses.split(", "))} for room, uses in used.items()} == ROOMS


@pytest.mark.parametrize(
    ("room", "named"), [(room, named) for room, named, _ in rooms()], ids=lambda part: str(part)[:12]
)
def test_the_table_names_every_module_of_a_room(room, named):
    folder = PACKAGE / room
    modules = {str(path.relative_to(folder).with_suffix("")) for path in folder.rglob("*.py")}
    modules = {module for module in modules if not module.endswith("__init__")}
    assert len(named) == len(set(named))
    lacking, gone = sorted(modules - set(named)), sorted(set(named) - modules)
    assert not lacking, f"docs/architecture.md, row `{room}/`: name {', '.join(lacking)}, which moses_rnn/{room}/ holds"
    assert not gone, f"docs/architecture.md, row `{room}/`: {', '.join(gone)} is not in moses_rnn/{room}/"


# --- the pages together -------------------------------------------------------------------------------------------------


def anchors(path):
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(page):
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if not link.startswith("http"):
            name, _, anchor = link.partition("#")
            target = page.parent / name if name else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


def test_the_readme_is_short_and_links_every_page():
    assert len(README.splitlines()) <= 200
    assert {f"docs/{path.name}" for path in DOCS.glob("*.md")} <= {
        link.partition("#")[0] for link in LINK.findall(README)
    }


def test_the_readme_has_one_table_of_results_between_its_marks():
    (results,) = re.findall(r"<!-- results -->\n(.*?)<!-- /results -->\n", README, re.DOTALL)
    assert "| Baseline |" in results
    assert "| +RNN |" in results


# --- the site ---------------------------------------------------------------------------------------------------------


def test_every_page_is_in_the_site():
    """`make docs` refuses links that lead nowhere; a page that nothing leads to it would not notice."""
    listed = re.findall(r": ([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(["index.md", *(page.name for page in DOCS.glob("*.md"))])


def test_links_fit_the_site():
    path = DOCS / "site.py"
    site = module_from_spec(spec := spec_from_file_location("site_of_docs", path))
    spec.loader.exec_module(site)
    assert site.first_page("[a](docs/a.md#b) [c](https://d/docs/e.md)") == "[a](a.md#b) [c](https://d/docs/e.md)"
    pages = "[a](a.md#b) [c](#d) [e](https://f/g.py)"
    assert site.without_files(f"{pages} [`h`](../tests/h.py) [i](examples/i)") == f"{pages} `h` i"
