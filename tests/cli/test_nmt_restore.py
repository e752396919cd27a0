"""moses-rnn-nmt restore: words in place of what stands for rare ones."""

import pytest
from click.testing import CliRunner

from moses_rnn.cli.nmt_annotate import annotate
from moses_rnn.cli.nmt_restore import restore
from tests.producers.rare import READ, save_rare_model
from tests.training.rare import write_aligned


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").write_bytes(b"s2 zork s3\n\nbork s4 zork\n")
    (tmp_path / "words").write_bytes(b"zork ZORK 1\n")
    (tmp_path / "list").write_bytes(b"\n".join(READ))
    (tmp_path / "list.dos").write_bytes(b"\r\n".join(READ) + b"\r\n")
    return tmp_path


def restored(*arguments, code=0):
    done = CliRunner().invoke(restore, [*map(str, arguments)])
    assert done.exit_code == code, done.output
    return done


WRITTEN = {
    "noalign": b"<unk> a\n\n<unk> <unk> <unk>\n",
    "copyable": b"<unk1> a\n\n<unk1> <unk2> <unk0>\n",
    "posall": b"<unk> <p:1> a <p:n>\n\n<unk> <p:0> <unk> <p:1> <unk> <p:n>\n",
    "posunk": b"<unk:1> a\n\n<unk:0> <unk:1> <unk:n>\n",
}


@pytest.mark.parametrize("kind", WRITTEN)
def test_each_kind_is_restored(here, kind):
    (here / "out").write_bytes(WRITTEN[kind])
    options = ["--shortlist", "list"] if kind in ("noalign", "copyable") else []
    done = restored("out", "--source", "src", "--kind", kind, *options)
    assert done.stdout_bytes == b"zork a\n\nbork zork <unk>\n"
    assert done.stderr.endswith("3 lines; 3 rare words restored, 1 stay <unk>\n")
    save_rare_model(here / "model", kind)
    if options:
        of_dos = restored("out", "--source", "src", "--kind", kind, "--shortlist", "list.dos")
        assert of_dos.stdout_bytes == done.stdout_bytes
    again = restored("out", "--source", "src", "--model", "model", "-o", "new", "-q")
    assert ((here / "new").read_bytes(), again.stderr) == (done.stdout_bytes, "")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--unknown", "copy"], b"zork"),
        (["--unknown", "dictionary", "--dictionary", "words"], b"ZORK"),
        (["--unknown", "lowercase", "--dictionary", "words"], b"ZORK"),
        ([], b"zork"),
        (["--dictionary", "words"], b"ZORK"),
    ],
)
def test_by_the_rule_that_is_asked_for_or_the_best_there_is(here, options, word):
    (here / "out").write_bytes(b"<unk:1>\n\n<unk:0>\n")
    done = restored("out", "--source", "src", "--kind", "posunk", *options)
    assert done.stdout_bytes == word + b"\n\nbork\n"


def test_an_alignment_says_what_belongs_where(here):
    (here / "out").write_bytes(b"<unk> b <unk>\n\n<unk>\n")
    (here / "links").write_bytes(b"1-0\n\n2-0 0-0\n")
    done = restored("out", "--source", "src", "--alignment", "links")
    assert done.stdout_bytes == b"zork b <unk>\n\nbork\n"


def test_the_round_trip_gives_back_the_unknown_words_that_equal_their_source_words(here):
    write_aligned(
        here, "t", [(b"a a b b Paris", b"a Paris b b", b"4-1 0-0 2-2"), (b"b Rom a", b"Rom a b", b"1-0 0-2 2-1")]
    )
    texts = "t", "--source", "src", "--target", "trg", "--alignment", "t.links"
    done = CliRunner().invoke(annotate, [*texts, "--min-count", "2", "-o", "new"])
    assert done.exit_code == 0, done.output
    assert b"<unk:3>" in (here / "new.trg").read_bytes()
    assert restored("new.trg", "--source", "t.src", "--kind", "posunk").stdout_bytes == (here / "t.trg").read_bytes()


COLUMNS = {  # of a dictionary whose source words are zork and bork
    "right": ("--dictionary", b"zork ZORK 1\nbork BORK 1\nParis Paris 1\n", False),
    "reversed": ("--dictionary", b"ZORK zork 1\nBORK bork 1\nParis Paris 1\n", True),
    "of other words": ("--dictionary", b"eins un 1\nzwei deux 1\n", False),
    "a lexicon": ("--lexicon", b"ZORK zork 1\nNULL bork 1\nBORK NULL 1\n", False),
    "a lexicon reversed": ("--lexicon", b"zork ZORK 1\nbork BORK 1\n", True),
}


@pytest.mark.parametrize("case", COLUMNS)
def test_columns_in_the_other_order_are_noticed(here, case):
    option, content, is_noticed = COLUMNS[case]
    (here / "words").write_bytes(content)
    (here / "out").write_bytes(b"<unk:1>\n\n<unk:0>\n")
    done = restored("out", "--source", "src", "--kind", "posunk", option, "words")
    assert ("warning: words: " in done.stderr) == is_noticed
    if case in ("right", "a lexicon"):
        assert done.stdout_bytes.startswith(b"ZORK\n")
