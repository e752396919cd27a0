"""Tiny models on disk, and a table of their words beside which a run writes."""

import pytest

from moses_rnn.table.table_blocks import chunks_between_sources
from tests.score.saved_models import save_models
from tests.score.tables import LINES


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    return save_models(tmp_path_factory.mktemp("models"))


@pytest.fixture
def here(tmp_path):
    (tmp_path / "table").write_bytes(b"".join(LINES))
    return tmp_path


@pytest.fixture
def in_small_chunks(monkeypatch):
    """Cut a small table into several blocks, one for each source."""
    monkeypatch.setattr(
        "moses_rnn.score.reading.chunks_between_sources", lambda lines: chunks_between_sources(lines, 1)
    )
