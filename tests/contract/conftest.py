"""The further network has its row while these tests run."""

import pytest

from moses_rnn.models import open as door
from tests.contract.rows import ALL


@pytest.fixture(autouse=True, scope="package")
def all_networks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(door, "find_architectures", ALL.values)
        yield
