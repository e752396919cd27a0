"""The scorer of phrase pairs: what it counts, and what it does when memory runs out; and the word penalty."""

import numpy as np
import pytest
import torch

from moses_rnn.errors import MosesRnnError
from moses_rnn.models.base import Tally
from moses_rnn.models.phrases import WordPenaltyScorer
from moses_rnn.networks import tries
from moses_rnn.table.table_blocks import Pairs
from tests.models.pairs import SOURCE, TARGET, of_pairs, random_pairs, scorer


def test_the_word_penalty_counts_unknown_target_words():
    pairs = [(b"s2", b"t2 t3"), (b"x y", b"t2 x \xc2\xa0"), (b"s2", b""), (b"s2", b"</s>")]
    assert of_pairs(WordPenaltyScorer(TARGET), pairs).ravel().tolist() == [0, -2, 0, -1]


class Forgetful:
    """Stands for a device whose memory holds only some rows."""

    def __init__(self, monkeypatch, error, rows):
        self.error, self.rows, self.calls = error, rows, 0
        original = tries.build_trie

        def build_trie(flat, lengths, *roots):
            self.calls += 1
            if len(lengths) > self.rows:
                raise self.error
            return original(flat, lengths, *roots)

        monkeypatch.setattr(tries, "build_trie", build_trie)


OUT_OF_CUDA = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
OUT_OF_CPU = RuntimeError(
    "[enforce fail at alloc_cpu.cpp:118] DefaultCPUAllocator: can't allocate memory: you tried to"
)


OUT_OF_PINNED = RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported")
OUT_OF_CUBLAS = RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")
SHORTAGES = [(OUT_OF_CUDA, 1), (OUT_OF_PINNED, 20), (OUT_OF_CUBLAS, 40), (OUT_OF_CPU, 7), (MemoryError(), 64)]


@pytest.mark.parametrize(("error", "rows"), SHORTAGES)
def test_work_is_halved_when_memory_runs_out(monkeypatch, error, rows):
    pairs = random_pairs(200)
    expected = of_pairs(scorer()[0], pairs)
    small, _ = scorer()
    Forgetful(monkeypatch, error, rows)
    tally = Tally()
    np.testing.assert_allclose(small.log_probs(Pairs.of(pairs), tally), expected, atol=1e-4)
    assert tally.oom_splits > 0
    assert 50 < unknown_pairs(pairs) == tally.unknown


def unknown_pairs(pairs):
    return sum(
        any(set(side.split()) - set(v.words) for side, v in zip(pair, (SOURCE, TARGET), strict=True)) for pair in pairs
    )


def test_a_single_phrase_that_does_not_fit_ends_the_run(monkeypatch):
    small, _ = scorer()
    Forgetful(monkeypatch, OUT_OF_CUDA, 0)
    with pytest.raises(MosesRnnError, match="the memory of cpu is too small for a single phrase: CUDA out of memory"):
        of_pairs(small, random_pairs(5))


def test_other_failures_are_not_taken_for_a_lack_of_memory(monkeypatch):
    Forgetful(monkeypatch, RuntimeError("mat1 and mat2 shapes cannot be multiplied"), 3)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        of_pairs(scorer()[0], random_pairs(20))
