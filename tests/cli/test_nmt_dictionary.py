"""moses-rnn-nmt dictionary: counted from aligned texts and from a phrase table, and read by translate and restore."""

import pytest
from click.testing import CliRunner

from moses_rnn.cli.nmt_dictionary import dictionary
from moses_rnn.formats.lexicon import read_lexicon
from tests.training.rare import write_aligned

TEXTS = "train", "--source", "src", "--target", "trg", "--alignment", "train.links"
TABLE = b"cat ||| le chat ||| 1 ||| 0-1 ||| 7 5 5 ||| |||\ncat ||| minou ||| 1 ||| 0-0 ||| 7 5 1\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_aligned(tmp_path, "train")
    (tmp_path / "table").write_bytes(TABLE)
    return tmp_path


def counted(*arguments, code=0):
    done = CliRunner().invoke(dictionary, [*map(str, arguments)])
    assert done.exit_code == code, done.output
    return done


def test_links_of_texts_are_counted(here):
    done = counted(*TEXTS)
    assert done.stdout_bytes == b"cat chat 1\ndog chien 1\nthe le 1\n"
    assert done.stderr.endswith("3 words with 3 translations, of 6 words that are linked\n")
    counted(*TEXTS, "--dictionary-count", 1, "-o", "all.gz", "-q")
    assert counted(*TEXTS, "--dictionary-count", 1, "-q").stdout_bytes.splitlines()[1] == b"dog chien 1"


def test_links_of_a_table_are_counted(here):
    assert counted("table", "-q").stdout_bytes == b"cat chat 0.833333333\n"
    lines = counted("table", "-q", "--dictionary-count", 1).stdout_bytes.splitlines()
    assert read_lexicon(lines, "d", target_first=False).likeliest(b"cat", 9) == [b"chat", b"minou"]


def test_what_was_seen_too_rarely_makes_no_dictionary(here):
    done = counted(*TEXTS, "--dictionary-count", 99, "-o", "out", code=3)
    assert "train.links: expected a link that was seen 99 times (--dictionary-count), found " in done.stderr
    assert not (here / "out").exists()


@pytest.mark.parametrize("read", ["train.src", "train.links"])
def test_what_is_read_is_not_written_over(here, read):
    before = (here / read).read_bytes()
    assert "is the input" in counted(*TEXTS, "-o", read, "--force", code=1).stderr
    assert (here / read).read_bytes() == before


def test_texts_need_all_three(here):
    for arguments in (TEXTS[:-2], TEXTS[:3], ("train", "--alignment", "train.links")):
        assert "texts need --source, --target and --alignment" in counted(*arguments, code=2).stderr


def test_what_cannot_be_counted_is_named(here):
    (here / "table").write_bytes(TABLE + b"cat ||| chat ||| 1 ||| 0-0\n")
    assert "table:3: expected three counts in field 5" in counted("table", "-o", "out", code=3).stderr
    (here / "train.links").write_bytes(b"0-0\n")
    assert "train.links: expected as many lines as " in counted(*TEXTS, "-o", "out", code=3).stderr
    assert not (here / "out").exists()
