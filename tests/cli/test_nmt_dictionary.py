"""moses-rnn nmt dictionary: counted from aligned texts and from a phrase table, and read by translate."""

import pytest
from click.testing import CliRunner

from moses_rnn.cli.nmt import dictionary
from moses_rnn.moses.lexicon import read_lexicon

TABLE = b"cat ||| le chat ||| 1 ||| 0-1 ||| 7 5 5 ||| |||\ncat ||| minou ||| 1 ||| 0-0 ||| 7 5 1\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table").write_bytes(TABLE)
    return tmp_path


def counted(*arguments, code=0):
    done = CliRunner().invoke(dictionary, [*map(str, arguments)])
    assert done.exit_code == code, done.output
    return done


def test_links_of_a_table_are_counted(here):
    assert counted("table").stdout_bytes == b"cat chat 0.833333333\n"
    lines = counted("table", "--dictionary-count", 1).stdout_bytes.splitlines()
    assert read_lexicon(lines, "d").likeliest(b"cat", 9) == [b"chat", b"minou"]
