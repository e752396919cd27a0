"""A scored table."""

import gzip

import pytest

from tests.cli.analyse.tables import TABLE


@pytest.fixture
def scored_table(tmp_path):
    (tmp_path / "t.gz").write_bytes(gzip.compress(b"".join(TABLE)))
    return tmp_path / "t.gz"
