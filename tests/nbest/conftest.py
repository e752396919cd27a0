"""Tiny models on disk."""

import pytest

from tests.score.saved_models import save_models


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    return save_models(tmp_path_factory.mktemp("models"))
