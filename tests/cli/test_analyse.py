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
    assert "phrase-table.gz: expected such source phrases, found none" in done.stderr
