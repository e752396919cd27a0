"""A table of the words of `models`, beside which a run writes."""

import pytest

from moses_rnn.table.table_blocks import chunks_between_sources
from tests.score.tables import LINES


@pytest.fixture
def here(tmp_path):
    (tmp_path / "table").write_bytes(b"".join(LINES))
    return tmp_path


@pytest.fixture
def in_small_chunks(monkeypatch):
    """Cut a small table into several blocks, one for each source."""
    monkeypatch.setattr(
        "moses_rnn.score.input_table.chunks_between_sources", lambda lines: chunks_between_sources(lines, 1)
    )
