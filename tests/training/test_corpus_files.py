"""What the first rank makes of a corpus is mapped by the others, and leaves no files behind."""

import errno

import numpy as np
import pytest

from moses_rnn.errors import InputError
from moses_rnn.networks.encdec import ENCDEC
from moses_rnn.training.corpus import CorpusConfig, build_corpus
from moses_rnn.training.corpus_files import PAIRS, Filing, made_by_first
from moses_rnn.training.model_folder import MAPPED, ModelFolder
from moses_rnn.training.ranks import ALONE
from tests.training.pretended_ranks import in_ranks
from tests.training.small import never


def build(folder):
    pairs = [(b"a%d b" % (i % 9), b"x%d y%d" % (i % 7, i)) for i in range(50)]
    return build_corpus(pairs, folder, CorpusConfig(held_out_pairs=5))


def arrays(corpus):
    return (
        corpus.source.tokens, corpus.source.ends, corpus.target.tokens, corpus.target.ends, corpus.training,
        corpus.held_out,
    )  # fmt: skip


def names(folder):
    return {path.name for path in folder.iterdir()}


def test_every_rank_has_the_corpus_of_the_first(tmp_path):
    made = []

    def make():
        made.append(build(tmp_path))
        return made[0]

    (tmp_path / "training.npy").symlink_to(tmp_path / "victim")
    corpora = in_ranks(3, lambda ranks: made_by_first(ranks, tmp_path, PAIRS, make, never))
    assert len(made) == 1
    for corpus in corpora:
        for mapped, array in zip(arrays(corpus), arrays(made[0]), strict=True):
            assert np.array_equal(mapped, array)
            assert mapped.dtype == array.dtype
            assert not mapped.flags.writeable
        assert corpus.digest == made[0].digest
        assert corpus.statistics == made[0].statistics
        assert corpus.source_vocabulary.words == made[0].source_vocabulary.words
        assert corpus.unigram_nats_per_token == made[0].unigram_nats_per_token


def test_alone_nothing_is_written(tmp_path):
    made = object()
    assert made_by_first(ALONE, tmp_path, Filing(None, None), lambda: made, never) is made


def test_the_files_stay_until_the_end(tmp_path):
    def run(ranks):
        return made_by_first(ranks, kept.arrays, PAIRS, lambda: build(kept.arrays), never)

    with ModelFolder(tmp_path / "model", ENCDEC) as kept:
        in_ranks(2, run)
        assert set(MAPPED) <= names(kept.arrays)
    assert not set(MAPPED) & names(kept.arrays)


def test_a_folder_that_is_not_shared_is_an_error(tmp_path):
    def load(folder):
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", f"{folder}/corpus.json")

    filing = Filing(lambda made, folder: None, load)
    with pytest.raises(
        InputError,
        match="corpus.json: expected what the first process has written there, found: No such file.*\n.*must share",
    ):
        in_ranks(2, lambda ranks: made_by_first(ranks, tmp_path, filing, lambda: 1, never))
