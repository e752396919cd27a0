"""A byte order mark at the beginning of a text that is read for words changes nothing."""

import gzip
import shutil

import pytest

from moses_rnn.files.streams import BYTE_ORDER_MARK
from tests.cli.nbest.lists import NBEST, REFERENCE, SOURCE, WEIGHTS
from tests.commands import zygote
from tests.score.saved_models import save_models

VECTORS = b"s2 1 2 3 4\ns3 4 3 2 1\n"
TEXTS = {
    "src": SOURCE,
    "ref": REFERENCE,
    "out": REFERENCE.replace(b"t5", b"t4"),
    "pairs": b"".join(b"s%d s%d\tt%d t4\n" % (i % 37, i % 31, i % 37) for i in range(600)),
    "vectors": VECTORS,
    "dictionary": b"s9 t7 0.5\ns9 t8 0.25\n",
    "bitext.s": b"".join(b"s%d s%d\n" % (i % 37, i % 31) for i in range(600)),
    "bitext.t": b"".join(b"t%d t%d\n" % (i % 37, i % 31) for i in range(600)),
}
TINY = "--hidden-size 4 --embedding-size 4 --max-epochs 1 --threads 1 --seed 1 -q"
COMMANDS = [
    "nbest add n --source src --add m/search -o -",
    "nbest tune n --reference ref",
    "nbest rerank n w.ini --reference ref",
    "analyse lengths src ref out",
    "cslm perplexity ref --model m/cslm",
    "nmt translate src --model m/search --unknown dictionary --dictionary dictionary",
    "sample src --model m/rnn --samples 3",
    "score pairs --format tsv --model m/rnn --allow-misfit -o -",
    "tokenise",
    f"train pairs --format tsv --model new --source-embeddings vectors {TINY}",
    f"nmt train bitext --source s --target t --model new {TINY}",
    f"cslm train bitext.t --architecture rnnlm --model new {TINY.replace('--embedding-size 4 ', '')}",
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    plain, marked = (tmp_path_factory.mktemp(name) for name in ("plain", "marked"))
    for folder, mark in ((plain, b""), (marked, BYTE_ORDER_MARK)):
        save_models(folder / "m")
        (folder / "n").write_bytes(NBEST)
        (folder / "w.ini").write_bytes(WEIGHTS.replace(b"WP0= 3\n", b""))
        for name, text in TEXTS.items():
            (folder / name).write_bytes(mark + text)
    return plain, marked


@pytest.mark.parametrize("command", COMMANDS)
def test_a_mark_changes_nothing(command, folders):
    results = []
    name, *arguments = command.split()
    if name in ("nbest", "analyse", "cslm", "nmt"):
        name = f"{name} {arguments.pop(0)}"
    for folder in folders:
        done = zygote(name, *arguments, cwd=folder, given=(folder / "src").read_bytes())
        assert done.returncode == 0, done.stderr
        model = folder / "new" / "model.safetensors"
        weights = model.read_bytes() if model.exists() else b""
        shutil.rmtree(folder / "new", ignore_errors=True)
        results.append((done.stdout.removeprefix(BYTE_ORDER_MARK), weights))
    assert results[0] == results[1]
    assert any(results[0])


def test_a_mark_is_copied_with_its_line(folders):
    plain, marked = (
        zygote("score", "pairs", "--format", "tsv", "--model", "m/rnn", "--allow-misfit", "-o", "-", cwd=folder)
        for folder in folders
    )
    assert marked.stdout == BYTE_ORDER_MARK + plain.stdout


def test_a_compressed_text_may_have_a_mark(folders):
    plain, _ = folders
    (plain / "src.gz").write_bytes(gzip.compress(BYTE_ORDER_MARK + SOURCE))
    first, second = (zygote("nmt translate", name, "--model", "m/search", cwd=plain) for name in ("src", "src.gz"))
    assert first.stdout == second.stdout


def test_a_text_in_utf_16_is_refused(folders):
    plain, _ = folders
    for encoding in ("utf-16-le", "utf-16-be"):
        (plain / "wide").write_bytes(("\ufeff" + SOURCE.decode()).encode(encoding))
        done = zygote("nmt translate", "wide", "--model", "m/search", cwd=plain)
        assert (done.returncode, done.stdout) == (3, b"")
        assert "wide:1: expected UTF-8, found UTF-16\n  Convert it: iconv -f UTF-16 -t UTF-8 wide > FILE" in done.stderr


def test_a_mark_alone_is_no_text(folders):
    plain, _ = folders
    (plain / "mark").write_bytes(BYTE_ORDER_MARK)
    assert zygote("nbest tune", "n", "--reference", "mark", cwd=plain).returncode == 3
