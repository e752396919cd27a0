"""The commands of README.md, docs/ and the parsing example run as printed; all but README.md's in `make test-release`.

A block of commands is run in order in a folder of its own, as it is printed but for the options of `SMALLER`. All other
commands of this package, in tables and in the text, are read by its command line and not run.
"""

import gzip
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from moses_rnn.cli.main import main
from tests.commands import BIN, ROOT, zygote
from tests.conftest import EXAMPLES, LEARNED, TINY

# What is added to a command so that it takes a second, by its longest beginning
SMALLER = {
    "moses-rnn-train": " ".join([*TINY, *LEARNED]),
    **dict.fromkeys(
        ("moses-rnn-train phrase-table.gz --architecture ranker", "moses-rnn-train phrase-table.gz --embedding-size"),
        " ".join(["--hidden-size", "8", "--shortlist", "60", *LEARNED]),
    ),
    "moses-rnn-train pairs.tsv": " ".join([*TINY, "--max-epochs", "12", *LEARNED[2:]]),  # of few pairs
    "moses-rnn nmt train": ("--hidden-size 16 --embedding-size 16 --max-epochs 20 --learning-rate 0.02 --dropout 0"),
    "moses-rnn nmt train work/treebank/": "--max-epochs 2",
    "moses-rnn nmt train arcs": "--max-epochs 2",
    "moses-rnn nmt translate work/treebank/": "--beam 1",
    "python examples/make_trees.py": "--sentences 40",
    "moses-rnn cslm train train.fr --network rnnlm": "--hidden-size 6 --max-epochs 1",
    "moses-rnn cslm train train.fr --network bengio": "--order 3 --embedding-size 4 --hidden-size 5 --max-epochs 1",
    "moses-rnn cslm train train.fr --model": "--order 3 --embedding-size 4 --shortlist 60 --max-epochs 1",
    "moses-rnn nbest add dev.nbest": "--allow-misfit",  # the decoder copies words that the small table lacks
    "moses-rnn nbest add test.nbest": "--allow-misfit",
    "moses-rnn analyse targets": "--min-words 2 --top 1",
    "moses-rnn analyse map words": "--method pca",
    "moses-rnn analyse map phrases": "--method pca --min-words 2",
    "$MOSES_ROOT/scripts/training/mert-moses.pl": "--maximum-iterations 1",
}
BY_SHELL = "echo ", "printf ", "paste ", "python examples/"
# Places that a reader puts in; they become files in the block's folder
PLACES = {"/my/system/model": ".", "/my/": "$PWD/"}
PAGES = [
    "README.md",
    "examples/parsing/README.md",
    *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")),
]
ELSEWHERE = (
    "moses-rnn verify phrase-table.rnn.gz",
    "moses-rnn-score phrase-table.gz --ray",
    "moses-rnn reranker ",
    "moses-rnn analyse results ",
)  # they need Moses, a cluster, a server or the pipeline's folder


def is_whole(lines):
    """Whether the shell would run these lines and not wait for more."""
    shell = subprocess.run(["bash", "-n"], input=lines, capture_output=True, text=True, check=False)
    return not lines.endswith("\\") and shell.returncode == 0


def commands_of(block):
    """The commands of a block, each on a line and without its comment."""
    lines = []
    for line in block.splitlines():
        lines.append(re.sub(r"(^|\s+)# .*", "", line))
        if is_whole("\n".join(lines)):
            command = " ".join(line.removesuffix("\\").strip() for line in lines)
            lines = []
            if command:
                yield command
    assert not lines, lines


def blocks():
    """(page and number, its commands) for all blocks of commands."""
    for page in PAGES:
        found = re.findall(r"^```sh\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        for number, block in enumerate(found, 1):
            yield f"{page}-{number}", list(commands_of(block))


BLOCKS = dict(blocks())
NEEDS_MOSES = {name for name, commands in BLOCKS.items() if any("$MOSES_ROOT" in command for command in commands)}


def is_run_here(command):
    own = ("moses-rnn", "python -m moses_rnn ", "cd ", "mkdir ", *BY_SHELL, "$MOSES_ROOT/")
    return command.startswith(own) and not command.startswith(ELSEWHERE) and " hf:" not in command


RUN_HERE = {
    name: run for name, all_ in BLOCKS.items() if (run := [command for command in all_ if is_run_here(command)])
}


# --- read, but not run --------------------------------------------------------------------------------------------------

CALL = re.compile(r"moses-rnn(-train|-score)?")


def calls_of(command):
    """The calls of this package in a line of the shell, each as its words."""
    words = shlex.shlex(command, posix=True, punctuation_chars=True)
    words.whitespace_split, words.commenters = True, ""
    call = []
    for word in [*words, ";"]:
        if set(word) <= set("();<>|&"):
            if call:
                yield call
            call = []
        elif call or CALL.fullmatch(word):
            call.append(word)


def documented_calls(page):
    """The calls in a page's blocks, and in the code of its text and tables."""
    text = (ROOT / page).read_text(encoding="utf-8")
    outside = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    in_text = (" ".join(code.replace(r"\|", "|").split()) for code in re.findall(r"`([^`]+)`", outside))
    in_blocks = (command for name, commands in BLOCKS.items() if name.startswith(f"{page}-") for command in commands)
    for command in (*in_blocks, *in_text):
        yield from calls_of(command) if "moses-rnn" in command else ()


def complaint(call):
    """What the command line has against a call, if anything; with …, or as a name alone, it need not be complete."""
    command, words = main, [word for word in [*call[0].split("-")[2:], *call[1:]] if word != "…"]
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        command = command.get_command(click.Context(command), words.pop(0))
    if command is None:
        return "no such command"
    try:
        if words:
            command.make_context("", words)
    except click.exceptions.Exit:  # --version
        return None
    except click.MissingParameter as error:
        return None if "…" in call else error.format_message()
    except click.UsageError as error:
        return error.format_message()
    return None


@pytest.mark.parametrize("page", PAGES)
def test_the_command_line_knows_every_documented_call(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    calls = [*documented_calls(page)]
    for file in (word for call in calls for word in call if word.endswith(".toml")):
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).touch()
    assert {shlex.join(call): said for call in calls if (said := complaint(call))} == {}


# --- a system to run them on --------------------------------------------------------------------------------------------


def write_system(here, table):
    """What train-model.perl leaves, texts, n-best lists, a treebank and the examples; the folder."""
    (here / "examples").symlink_to(EXAMPLES)
    shutil.copy(table, here)
    ini = (EXAMPLES / "moses.ini").read_text().replace("lm.arpa.gz", str(EXAMPLES / "lm.arpa.gz"))
    (here / "moses.ini").write_text(ini.replace("path=phrase-table.gz", f"path={here}/phrase-table.gz"))
    for side in ("en", "fr"):
        (here / f"train.{side}").write_text("".join(sentences(f"train.{side}.gz", 300)))
    pairs = [*zip(*(sentences(f"train.{side}.gz", 300) for side in ("en", "fr")), strict=True)]
    (here / "pairs.tsv").write_text("".join(f"{en[:-1]}\t{fr}" for en, fr in pairs))
    (here / "train.links").write_text("".join(links_between(*pair) + "\n" for pair in pairs))
    for name, side in itertools.product(("dev", "test"), ("en", "fr")):
        (here / f"{name}.{side}").write_text("".join(sentences(f"{name}.{side}", 8)))
    for name in ("dev", "test"):
        texts = [(here / f"{name}.{side}").read_text().splitlines() for side in ("en", "fr")]
        (here / f"{name}.nbest").write_text("".join(n_best_list(*texts)))
    (here / "lm.arpa").write_bytes(gzip.decompress((EXAMPLES / "lm.arpa.gz").read_bytes()))
    (here / "tuned").mkdir()
    (here / "tuned" / "moses.ini").write_text("[weight]\nLM0= 1\n")
    subprocess.run([sys.executable, EXAMPLES / "make_trees.py", here, "--sentences", "40"], check=True)
    return here


def sentences(name, count):
    path = EXAMPLES / "corpus" / name
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        return list(itertools.islice(lines, count))


def n_best_list(sources, references):
    """Two hypotheses of each sentence, the worse one first, each a single phrase."""
    for number, (source, reference) in enumerate(zip(sources, references, strict=True)):
        words = reference.split()
        for hypothesis, lm in ((words[::-1], -1), (words, -1.5)):
            spans = f"0-{len(source.split()) - 1}=0-{len(words) - 1}"
            links = links_between(source, reference)
            yield f"{number} ||| {' '.join(hypothesis)}  ||| LM0= {lm} ||| {lm} ||| {spans} ||| {links} \n"


def links_between(source, target):
    """As a word alignment has them: each word with that in its place."""
    return " ".join(f"{i}-{i}" for i in range(min(len(source.split()), len(target.split()))))


@pytest.fixture(scope="module")
def bare_system(tmp_path_factory, table):
    return write_system(tmp_path_factory.mktemp("system"), table)


@pytest.fixture(scope="module")
def scored_system(tmp_path_factory, bare_system, model):
    here = tmp_path_factory.mktemp("scored") / "system"
    shutil.copytree(bare_system, here, symlinks=True)
    shutil.copytree(model, here / model.name)
    perform("moses-rnn cslm train train.fr --model cslm --preset small --quiet", here)
    perform("moses-rnn-score phrase-table.gz --moses-ini moses.ini --quiet", here)
    return here


@pytest.fixture
def system(request, tmp_path, bare_system):
    """A folder for a block: without networks if it trains them."""
    trains = any(re.match(r"moses-rnn[- ]((cslm|nmt) )?train ", command) for command in RUN_HERE[request.param])
    folder = bare_system if trains else request.getfixturevalue("scored_system")
    here = tmp_path / "here"
    shutil.copytree(folder, here, symlinks=True)
    for ini in here.glob("*.ini"):
        ini.write_text(re.sub(r"path=.*/(phrase-table[.\w]*\.gz)", rf"path={here}/\1", ini.read_text()))
    return here, RUN_HERE[request.param]


def of_each_page(names):
    """The blocks of README.md for every run of the tests, the others for a release."""
    return [
        pytest.param(name, marks=() if name.startswith("README.md") else pytest.mark.release) for name in sorted(names)
    ]


def smaller(command):
    before, redirected, after = command.partition(" > ")
    beginning = max((text for text in SMALLER if command.startswith(text)), key=len, default="")
    return " ".join([before, *filter(None, [SMALLER.get(beginning)])]) + redirected + after


def perform(command, here):
    """Run a command of this package, or of the system, in a folder; what it prints goes where it says."""
    if command.startswith(BY_SHELL):
        path = f"{BIN}:{os.environ['PATH']}"
        subprocess.run(
            ["bash", "-o", "pipefail", "-c", smaller(command)], cwd=here, check=True, env={**os.environ, "PATH": path}
        )
        return
    words = shlex.split(smaller(command))
    output = here / words.pop() if ">" in words else None
    if words[:3] == ["python", "-m", "moses_rnn"]:
        words[:3] = ["moses-rnn"]
    name = words[0].removeprefix("moses-rnn").removeprefix("-")
    done = zygote(name, *(word for word in words[1:] if word != ">"), cwd=here, stdout=output)
    assert done.returncode == 0, f"{command}\n{done.stderr}"


@pytest.mark.parametrize("system", of_each_page(RUN_HERE.keys() - NEEDS_MOSES), indirect=True)
def test_the_commands_of_a_block_run_as_printed(system, monkeypatch):
    monkeypatch.delenv("MOSES_ROOT", raising=False)
    here, commands = system
    if any("--lm" in command for command in commands):
        pytest.importorskip("kenlm")
    for command in commands:
        perform(command, here)


@pytest.mark.parametrize("system", of_each_page(NEEDS_MOSES), indirect=True)
def test_what_a_block_does_beside_moses_runs_as_printed(system, monkeypatch):
    monkeypatch.delenv("MOSES_ROOT", raising=False)
    here, commands = system
    for command in commands:
        if command.startswith(("moses-rnn", *BY_SHELL)):
            perform(command, here)


@pytest.mark.moses
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("system", sorted(NEEDS_MOSES), indirect=True)
def test_a_block_runs_as_printed_with_moses(system, moses_root):
    here, commands = system
    shutil.copy(here / "moses.ini", here / "tuned" / "moses.ini")
    for name in ("dev", "test"):
        (here / f"{name}.nbest").unlink()
        shutil.copy(here / f"{name}.en", here / f"{name}.src")
        shutil.copy(here / f"{name}.fr", here / f"{name}.ref")
    script = "\n".join(map(smaller, commands))
    for place, path in PLACES.items():
        script = script.replace(place, path)
    environment = {
        **os.environ,
        "MOSES_ROOT": str(moses_root),
        "PATH": f"{BIN}:{os.environ['PATH']}",
    }
    shell = ["bash", "-euxc", script]
    done = subprocess.run(shell, cwd=here, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert len((here / "test.out").read_text().splitlines()) == 8


# --- Python -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", ["README.md", "docs/api.md"])
def test_the_lines_of_python_run(page, scored_system, monkeypatch):
    monkeypatch.chdir(scored_system)
    text = (ROOT / page).read_text(encoding="utf-8")
    names, values = {}, []
    for lines in re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        *statements, expression = lines.strip().splitlines()
        exec("\n".join(statements), names)
        values.append(eval(expression, names))
    assert values[0].dtype == "float64"
    assert len(values) == (1 if page == "README.md" else 4)


def test_the_notebook_runs_from_its_first_cell_to_its_last(scored_system, tmp_path, monkeypatch, capsys):
    (tmp_path / "demo").mkdir()
    (tmp_path / "examples").symlink_to(EXAMPLES)
    (tmp_path / "demo" / "model").symlink_to(scored_system / "phrase-table.rnn-model")
    for name in ("phrase-table.rnn.gz", "phrase-table.rnn.gz.json"):
        (tmp_path / "demo" / name).symlink_to(scored_system / name)
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((EXAMPLES / "phrase_scores.ipynb").read_text(encoding="utf-8"))
    names, printed = {}, ""
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
            new, stored = capsys.readouterr().out, json.dumps(cell["outputs"])
            assert not new or '"stdout"' in stored, cell["source"]
            assert not re.search(r"[\s\"'=]/\w", stored), stored  # no path of anybody's machine
            printed += new
    assert "in front of this → devant cette" in printed
    assert "of 3,000 pairs above log p = -5" in printed
