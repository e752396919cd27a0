"""What the first rank makes of a corpus is mapped by the others, and leaves no files behind."""

import numpy as np
import pytest

from moses_rnn.errors import InputError
from moses_rnn.networks.encdec import ENCDEC
from moses_rnn.training.corpus import Corpus, CorpusConfig, build_corpus
from moses_rnn.training.materials import built_by_first
from moses_rnn.training.model_folder import MAPPED, ModelFolder
from moses_rnn.training.ranks import ALONE
from tests.training.pretended_ranks import in_ranks
from tests.training.small import never


def build(folder):
    pairs = [(b"a%d b" % (i % 9), b"x%d y%d" % (i % 7, i)) for i in range(50)]
    return build_corpus(pairs, folder, CorpusConfig(held_out_pairs=5))


class Material:
    """Builds the corpus, and remembers it."""

    corpus = Corpus

    def __init__(self):
        self.built = []

    def build(self, folder):
        self.built.append(build(folder))
        return self.built[-1]


def arrays(corpus):
    return (
        corpus.source.tokens, corpus.source.ends, corpus.target.tokens, corpus.target.ends, corpus.training,
        corpus.held_out,
    )  # fmt: skip


def names(folder):
    return {path.name for path in folder.iterdir()}


def test_every_rank_has_the_corpus_of_the_first(tmp_path):
    material = Material()
    (tmp_path / "training.npy").symlink_to(tmp_path / "victim")
    corpora = in_ranks(3, lambda ranks: built_by_first(ranks, tmp_path, material, never))
    (made,) = material.built
    for corpus in corpora:
        for mapped, array in zip(arrays(corpus), arrays(made), strict=True):
            assert np.array_equal(mapped, array)
            assert mapped.dtype == array.dtype
            assert not mapped.flags.writeable
        assert corpus.digest == made.digest
        assert corpus.statistics == made.statistics
        assert corpus.source_vocabulary.words == made.source_vocabulary.words
        assert corpus.unigram_nats_per_token == made.unigram_nats_per_token


def test_alone_only_the_words_ids_are_written(tmp_path):
    material = Material()
    assert built_by_first(ALONE, tmp_path, material, never) is material.built[0]
    assert not set(MAPPED) & names(tmp_path)


def test_the_files_stay_until_the_end(tmp_path):
    material = Material()

    def run(ranks):
        return built_by_first(ranks, kept.arrays, material, never)

    with ModelFolder(tmp_path / "model", ENCDEC) as kept:
        in_ranks(2, run)
        assert set(MAPPED) <= names(kept.arrays)
    assert not set(MAPPED) & names(kept.arrays)


def test_a_folder_that_is_not_shared_is_an_error(tmp_path):
    class Elsewhere(Material):
        def build(self, folder):
            return Elsewhere()

        def save(self, folder):
            pass

    with pytest.raises(
        InputError,
        match="corpus.json: expected what the first process has written there, found: No such file.*\n.*must share",
    ):
        in_ranks(2, lambda ranks: built_by_first(ranks, tmp_path, Elsewhere(), never))
