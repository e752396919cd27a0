"""Tiny models on disk, and a table of their words beside which a run writes."""

import pytest

from tests.score.saved_models import save_models
from tests.score.tables import LINES


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    return save_models(tmp_path_factory.mktemp("models"))


@pytest.fixture
def here(tmp_path):
    (tmp_path / "table").write_bytes(b"".join(LINES))
    return tmp_path
