"""What commands refuse: a line of refusals.txt for each case.

A line has the exit code, the place that the message names, and the command line. A fourth column is a file that the
command needs: NAME=CONTENT. Two or more blanks part the columns. `world` makes all other files and models. The place
`-` means that the message names none.

A refused command prints nothing on stdout and leaves all files as they were. The words of its message are free, the
form is not.
"""

import gzip
import re
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

from moses_rnn.models.model import Model
from moses_rnn.models.open import save_model
from moses_rnn.networks.cells import ENCDEC_OF_CELLS
from moses_rnn.networks.cstm import CSTM
from tests.analysis.attentive import lstm, save
from tests.cli.analyse.tables import TABLE, with_another_score
from tests.cli.nbest.lists import NBEST, REFERENCE, SOURCE, WEIGHTS
from tests.cli.scored import INI
from tests.commands import ROOT, run, spoken, zygote
from tests.models.pairs import SOURCE as SOURCE_WORDS
from tests.models.pairs import TARGET as TARGET_WORDS
from tests.models.rare import save_rare_model
from tests.networks.networks import PAPERS, cell_network, cstm_network
from tests.score.saved_models import save_models
from tests.score.tables import LINES

FILES = {
    "table": b"".join(LINES),
    "four": b"s2 s3 ||| t2 ||| .1 .2 .3 .4 ||| 0-0 ||| 4 2 1 ||| |||\ns2 s4 ||| t2 ||| .1 .2 .3 .4 ||| 0-0 ||| 4 2 1 ||| |||\n",
    "scored": b"".join(TABLE),
    "unsorted": b"".join(reversed(TABLE)),
    "rules": b"s2 [X] ||| t2 [X] ||| .1 .2 .3 .4 ||| 0-0\n",
    "factors": b"s2|a ||| t2|b ||| .1 .2 .3 .4 ||| 0-0\n",
    "cut.gz": gzip.compress(b"s2 ||| t2 ||| 1\n" * 9999)[:-20],
    "empty": b"",
    "blank": b" \n\n",
    "old": b"precious",
    "mine/file": b"precious",
    "sub/file": b"",
    "ems/training/file": b"",  # as an EMS working folder has
    "moses.ini": INI.format(table="four").encode(),
    "other.ini": INI.format(table="four").replace("=4", "=3").encode(),
    "six.ini": INI.format(table="four").replace("=4", "=6").encode(),
    "table.ini": b"[feature]\nPhraseDictionaryMemory name=TM num-features=2 path=table\n[weight]\nTM= 1 1\n",
    "n": NBEST,
    "src": SOURCE,
    "ref": REFERENCE,
    "w.ini": WEIGHTS,
    "short": b"s2\n",
    "endless": b"s2\n" + b"s2 " * 1001,
    "plain": b"0 ||| t2 ||| LM0= 1 ||| 1 ||| 0-0 \n",
    "corpus.src": SOURCE,
    "corpus.trg": REFERENCE,
    "lex": b"t2 s2 0.5\n",
    "sparse": b"LM0_x 1\n",
    "links": b"0-0\n" * 4,
    "pairs.tsv": b"s2 s3\tt2\n",
}


class Row(NamedTuple):
    code: int
    place: str
    words: list[str]
    file: str
    content: bytes

    def __str__(self):
        return " ".join(self.words) + f" [{self.file}]" * bool(self.file)


def _row(line):
    code, place, command, *extra = re.split(r"\s{2,}", line, maxsplit=3)
    name, _, content = extra[0].partition("=") if extra else ("", "", "")
    content = content.encode("latin-1", "backslashreplace").decode("unicode_escape").encode("latin-1")
    return Row(int(code), place, shlex.split(command), name, content)


TEXT = Path(__file__).with_name("refusals.txt").read_text(encoding="utf-8")
ROWS = [_row(line) for line in TEXT.splitlines() if line and not line.startswith("#")]
FORMS = re.compile(
    r"expected (.+[,:] found|the name of|a type|a regular file)|cannot be (made|read|written): "
    r"|already exists|is the input|is also used for|is not a (model|regular)|has .+ already|has no model beside it|must be a file"
)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A folder with inputs for all commands. No row changes it."""
    here = tmp_path_factory.mktemp("world")
    for name, content in FILES.items():
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_bytes(content)
    (here / "m").mkdir()
    save_models(here / "m")
    save_rare_model(here / "m" / "rare")
    save(here / "m" / "lstm", lstm())
    words = {"source": SOURCE_WORDS, "target": TARGET_WORDS}
    save_model(here / "m" / "cells", Model(ENCDEC_OF_CELLS, cell_network(PAPERS["lstm"]), words))
    save_model(here / "m" / "cstm", Model(CSTM, cstm_network(), words))
    with_another_score(here / "wide", {4: "RNNInverse", 5: "WordPenalty"})
    of_model = ["--model", "m/rnn", "-q"]
    for output, options in {"once": [], "shard1": ["--shard", "1/2"], "shard2": ["--shard", "2/2"]}.items():
        run("score", "table", *of_model, *options, "-o", output, cwd=here)
    return here


def files_of(folder):
    """All files and folders, hidden ones too, with what shows a change."""
    found = ((path, path.lstat()) for path in folder.rglob("*"))
    return {path: path.is_dir() or (status.st_ino, status.st_size, status.st_mtime_ns) for path, status in found}


def place_and_words(row, messages):
    """The place and the text of the last message. Indented advice may follow it."""
    assert "Traceback" not in messages
    assert str(ROOT / "moses_rnn") not in messages
    if row.code == 2:
        usage, _, message = messages.partition("\n\nError: ")
        assert usage.startswith(f"Usage: {spoken(row.words[0])} ")
        return message, message
    lines = messages.splitlines()
    while lines[-1].startswith("  "):
        lines.pop()
    message = lines[-1].removeprefix(f"{spoken(row.words[0])}: ")
    assert message != lines[-1]
    return message.partition(": ")[0], message


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_refused(world, monkeypatch, row):
    monkeypatch.delenv("MOSES_ROOT", raising=False)
    if "--lm" in row.words:
        pytest.importorskip("kenlm")
    if row.file:
        assert not (world / row.file).exists()
        (world / row.file).write_bytes(row.content)
    before = files_of(world)
    done = zygote(row.words[0], *row.words[1:], cwd=world)
    after = files_of(world)
    if row.file:
        (world / row.file).unlink()
    assert (done.returncode, done.stdout) == (row.code, b""), done.stderr
    assert after == before
    place, words = place_and_words(row, done.stderr)
    if row.code == 2:
        assert row.place in words
    else:
        assert FORMS.search(words), words
        assert row.place in ("-", place.split(", ")[0]), words


INSISTED = {
    "score pairs.tsv --format tsv --model m/unlearned -o -": "--allow-misfit",
    "score once --model m/rnn -o -": "--again",
    "nbest add n --source src --add m/unlearned --whole": "--allow-misfit",
}


@pytest.mark.parametrize("line", INSISTED)
def test_some_refusals_may_be_overruled(world, line):
    command, *arguments = line.split()
    for further, code in ([], 3), ([INSISTED[line]], 0):
        assert zygote(command, *arguments, *further, cwd=world).returncode == code
