"""Fixtures of this room: a model folder."""

import pytest

from moses_rnn.scorers.open import save_model
from tests.networks.saved import checkpoint


@pytest.fixture
def folder(tmp_path):
    """A model folder."""
    save_model(tmp_path / "m", checkpoint(provenance={"table": "t.gz"}))
    return tmp_path / "m"
