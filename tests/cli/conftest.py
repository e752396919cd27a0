import gzip
import shutil

import pytest

from tests.cli.scored import INI, LONG
from tests.commands import run


@pytest.fixture
def here(tmp_path, table, model):
    shutil.copy(table, tmp_path)
    shutil.copytree(model, tmp_path / model.name)
    return tmp_path


@pytest.fixture(scope="session")
def long_table_once(tmp_path_factory, table, model):
    here = tmp_path_factory.mktemp("long")
    shutil.copytree(model, here / model.name)
    (here / "long").write_bytes(gzip.decompress(table.read_bytes()) * 40)
    (here / "moses.ini").write_text(INI.format(table="long"))
    run("score", *LONG, "-o", "whole.gz", "--output-ini", "whole.ini", cwd=here)
    return here


@pytest.fixture
def long_table(long_table_once, tmp_path):
    """A folder with a table that takes a while, and the result of an undisturbed run in `whole`."""
    shutil.copytree(long_table_once, tmp_path / "here", copy_function=shutil.copy2)
    return tmp_path / "here"


@pytest.fixture
def system(tmp_path):
    (tmp_path / "moses.ini").write_text(INI.format(table="phrase-table.gz"))
    (tmp_path / "phrase-table.gz").write_text("a ||| b ||| 0.5 0.5 0.5 0.5\n")
    (tmp_path / "scored.gz").write_text("a ||| b ||| 0.5 0.5 0.5 0.5 0.25 1\n")
    return tmp_path
