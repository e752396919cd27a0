import pytest

from tests.cli.nbest.lists import NBEST, REFERENCE, SOURCE, WEIGHTS
from tests.commands import zygote


@pytest.fixture
def here(tmp_path):
    for name, content in (("n", NBEST), ("src", SOURCE), ("ref", REFERENCE), ("w.ini", WEIGHTS)):
        (tmp_path / name).write_bytes(content)
    return tmp_path


@pytest.fixture
def nbest(here, models, monkeypatch):
    """The command, run beside a list, its source and its reference; a word with braces names a model."""

    monkeypatch.delenv("MOSES_ROOT", raising=False)

    def started(*arguments, code=0, **options):
        done = zygote("nbest", *(str(word).replace("{}", str(models)) for word in arguments), cwd=here, **options)
        assert done.returncode == code, done.stderr
        return done

    return started


@pytest.fixture
def more(nbest, here):
    nbest("add", "n", "--source", "src", "--word-penalty", "{}/words", "-o", "more", "-q")
    return here / "more"
