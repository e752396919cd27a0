"""moses-rnn nmt dictionary: counted from aligned texts and from a phrase table, and read by translate."""

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
    counted(*TEXTS, "--dictionary-count", 1, "-o", "all.gz")
    assert counted(*TEXTS, "--dictionary-count", 1).stdout_bytes.splitlines()[1] == b"dog chien 1"


def test_links_of_a_table_are_counted(here):
    assert counted("table").stdout_bytes == b"cat chat 0.833333333\n"
    lines = counted("table", "--dictionary-count", 1).stdout_bytes.splitlines()
    assert read_lexicon(lines, "d").likeliest(b"cat", 9) == [b"chat", b"minou"]
