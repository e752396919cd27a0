import gzip

import pytest

from tests.analysis.scored import sign
from tests.cli.analyse.tables import TABLE


@pytest.fixture
def scored_table(tmp_path):
    (tmp_path / "t.gz").write_bytes(gzip.compress(b"".join(TABLE)))
    sign(tmp_path / "t.gz", {4: "RNN"})
    return tmp_path / "t.gz"
