import pytest

from moses_rnn.models.kenlm import KenlmScorer
from tests.models.tiny_lm import SMALL


@pytest.fixture(scope="module")
def kenlm(tmp_path_factory):
    pytest.importorskip("kenlm", reason="kenlm is not installed: pip install 'moses-rnn[lm]'")
    return KenlmScorer(SMALL.write(tmp_path_factory.mktemp("lm")))
