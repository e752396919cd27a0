import shutil

from tests.conftest import run


def test_targets_before_and_after(tmp_path, table, model):
    scored = tmp_path / "t.gz"
    run("score", table, "--model", model, "-o", scored)
    done = run("analyse", "targets", scored, "--count", "2", "--top", "2")
    assert done.stdout.count("p(target|source)") == 2
    one = run("analyse", "targets", scored, "--source", done.stdout.split("   (seen", maxsplit=1)[0], "--top", "2")
    assert done.stdout.startswith(one.stdout)


def test_nothing_found_is_an_error(tmp_path, table):
    shutil.copy(table, tmp_path)
    done = run("analyse", "targets", tmp_path / "phrase-table", "--source", "no such phrase", check=False)
    assert done.returncode == 3
    assert "phrase-table.gz: expected source phrases 'no such phrase', found none" in done.stderr


def test_an_unscored_table_and_a_column_that_is_none_are_refused(table):
    done = run("analyse", "targets", table, check=False)
    assert done.returncode == 3
    assert "expected a scored table, found 4 scores\n  Score it with moses-rnn-score" in done.stderr
    done = run("analyse", "targets", table, "--column", "9", check=False)
    assert "expected --column from 0 to 3, the scores of this table, found 9" in done.stderr
