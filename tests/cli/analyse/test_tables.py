"""moses-rnn analyse targets and summary: what is printed as a table."""

from tests.cli.analyse.calls import seen


def test_csv_keeps_odd_bytes(tmp_path):
    (tmp_path / "t").write_bytes(b"a ||| \xff\xc2\xa0 ||| 1 1 1 1 1\n")
    data = seen("targets", tmp_path / "t", "--source", "a", "--format", "csv", "--column", 4).stdout_bytes
    assert b",\xff\xc2\xa0,1,\xff\xc2\xa0,1\n" in data


def test_sources_that_are_not_there_are_said(scored_table):
    done = seen("targets", scored_table, "--source", " e  f g h", "--source", "zzz")
    assert done.exit_code == 0
    assert "t.gz: has no source phrase 'zzz'\n" in done.stderr
    assert "e f g h   (seen 3 times, 3 targets)" in done.stdout
