import numpy as np
import pytest

from moses_rnn.training.corpus import CorpusConfig, build_corpus


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """A language to be learned: word w3 is translated by v3, and v0 closes every phrase."""
    random = np.random.default_rng(0)
    words = [random.integers(8, size=random.integers(1, 5)) for _ in range(3000)]
    pairs = [(b" ".join(b"w%d" % i for i in ids), b" ".join([*(b"v%d" % i for i in ids), b"v0"])) for ids in words]
    return build_corpus(pairs, tmp_path_factory.mktemp("corpus"), CorpusConfig(held_out_pairs=100))
