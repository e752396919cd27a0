import pytest

import moses_rnn
from tests.models.rare import save_rare_model
from tests.networks.saved import saved_search
from tests.score.saved_models import save_models


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """A folder of models of all kinds; see `save_models`."""
    folder = save_models(tmp_path_factory.mktemp("models"))
    save_rare_model(folder / "rare")
    saved_search(folder / "other words")
    (folder / "file").write_text("no folder")
    (folder / "table").write_text(
        "s2 s3 ||| t2 t3 ||| 0.5 0.25 0.125 1 ||| 0-0 1-1 ||| 4 2 1\ns2 s3 ||| t2 ||| 1 1 1 1 ||| 0-0\n"
    )
    return folder


@pytest.fixture(scope="session")
def encdec(models):
    return moses_rnn.load(models / "rnn", device="cpu")


@pytest.fixture(scope="session")
def search(models):
    return moses_rnn.load(models / "search", device="cpu")
