"""The producer of phrase pairs: its scores against the scalar equations, and what it does when memory runs out."""

import numpy as np
import pytest
import torch

from moses_rnn.errors import MosesRnnError
from moses_rnn.inference import steps, trie_scoring
from moses_rnn.models.variants import SWITCHES
from moses_rnn.models.vocabulary import END_ID
from moses_rnn.producers import phrases as producers
from moses_rnn.producers.base import Tally
from moses_rnn.producers.phrases import WordPenaltyProducer
from tests.models import reference
from tests.producers.pairs import SOURCE, TARGET, of_pairs, producer, random_pairs


@pytest.mark.parametrize("variant", SWITCHES)
def test_200_pairs_equal_the_scalar_equations(variant):
    rnn, weights = producer(variant)
    pairs = random_pairs(200)
    for (source, target), (value,) in zip(pairs, of_pairs(rnn, pairs), strict=True):
        ids = [*SOURCE.ids(source.split()), END_ID], [*TARGET.ids(target.split()), END_ID]
        assert value == pytest.approx(reference.log_prob(weights, *ids, SWITCHES[variant]), abs=1e-4)


def test_a_score_depends_on_its_pair_alone(monkeypatch):
    rnn, _ = producer()
    pairs = random_pairs(300)
    together = of_pairs(rnn, pairs)
    alone = np.concatenate([of_pairs(rnn, [pair]) for pair in pairs])
    np.testing.assert_allclose(together, alone, rtol=1e-5)
    order = np.random.default_rng(0).permutation(300)
    np.testing.assert_allclose(of_pairs(rnn, [pairs[i] for i in order]), together[order], rtol=1e-5)
    monkeypatch.setattr(producers, "PAIRS", 7)
    monkeypatch.setattr(steps, "LOGITS_AT_ONCE", 3 * len(TARGET))
    np.testing.assert_allclose(of_pairs(rnn, pairs), together, rtol=1e-5)
    monkeypatch.setattr(trie_scoring, "TRIE_CELLS", 10)
    np.testing.assert_allclose(of_pairs(rnn, pairs), together, rtol=1e-5)


def test_likely_pairs_keep_their_relative_precision():
    """Near p = 1, log p is the small difference of two large numbers if it is computed carelessly."""
    rnn, weights = producer()
    with torch.no_grad():
        rnn._network.stepper._output._b_G[END_ID] = 14.0  # the empty target becomes all but certain
    weights["decoder.b_G"][END_ID] = 14.0
    value = of_pairs(rnn, [(b"s2 s3", b"")])[0, 0]
    expected = reference.log_prob(weights, [*SOURCE.ids([b"s2", b"s3"]), END_ID], [END_ID], SWITCHES["paper"])
    assert -1e-2 < expected < 0
    assert value == pytest.approx(expected, rel=1e-5)


def test_no_pairs_have_no_scores():
    assert of_pairs(producer()[0], []).shape == (0, 1)


def test_equal_chunks_give_equal_bits():
    rnn, _ = producer()
    pairs = random_pairs(300)
    assert of_pairs(rnn, pairs).tobytes() == of_pairs(rnn, pairs).tobytes()


def test_words_outside_the_shortlist_are_one_word():
    rnn, _ = producer()
    pairs = [(b"s2 s9", b"t9 t2"), (b"s2 other", b"</s> t2"), (b"s2 \xff", b"<unk>\tt2 ")]
    assert len(set(of_pairs(rnn, pairs).ravel().tolist())) == 1


def test_the_inverse_direction_reads_the_target():
    direct, _ = producer()
    inverse, _ = producer(direction="target-to-source")
    pairs = random_pairs(20)
    turned = [(target, source) for source, target in pairs]
    assert of_pairs(inverse, turned).tolist() == of_pairs(direct, pairs).tolist()
    assert (direct.name, inverse.name) == ("RNN", "RNNInverse")
    assert "p(target | source)" in direct.meaning
    assert "p(source | target)" in inverse.meaning


def test_all_targets_of_a_source_sum_to_one():
    """Σ p over every target of up to two words, plus the mass of longer ones, is 1 (here by the chain rule)."""
    rnn, weights = producer()
    source = b"s3 s4"
    ids = [*SOURCE.ids(source.split()), END_ID]
    spellings = {i: word for i, word in enumerate(TARGET.words) if i != END_ID}
    short = [[], *[[i] for i in spellings]]
    mass = np.exp(of_pairs(rnn, [(source, b" ".join(spellings[i] for i in t)) for t in short])).sum()
    first = reference.distributions(weights, ids, [END_ID], SWITCHES["paper"])[0]
    longer = 0.0
    for i in spellings:
        second = reference.distributions(weights, ids, [i, END_ID], SWITCHES["paper"])[1]
        longer += first[i] * (1 - second[END_ID])
    assert mass + longer == pytest.approx(1, abs=1e-5)


def test_the_word_penalty_counts_unknown_target_words():
    pairs = [(b"s2", b"t2 t3"), (b"x y", b"t2 x \xc2\xa0"), (b"s2", b""), (b"s2", b"</s>")]
    assert of_pairs(WordPenaltyProducer(TARGET), pairs).ravel().tolist() == [0, -2, 0, -1]


class Forgetful:
    """Stands for a device whose memory holds only some rows."""

    def __init__(self, monkeypatch, error, rows):
        self.error, self.rows, self.calls = error, rows, 0
        original = trie_scoring.build_trie

        def build_trie(flat, lengths, *roots):
            self.calls += 1
            if len(lengths) > self.rows:
                raise self.error
            return original(flat, lengths, *roots)

        monkeypatch.setattr(trie_scoring, "build_trie", build_trie)


OUT_OF_MEMORY = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
    RuntimeError("[enforce fail at alloc_cpu.cpp:118] DefaultCPUAllocator: can't allocate memory: you tried to"),
    MemoryError(),
]


@pytest.mark.parametrize("error", OUT_OF_MEMORY, ids=["cuda", "cpu", "python"])
@pytest.mark.parametrize("rows", [1, 7, 64])
def test_work_is_halved_when_memory_runs_out(monkeypatch, error, rows):
    """Fault 38: scores stay within the tolerance of other batch sizes."""
    pairs = random_pairs(200)
    expected = of_pairs(producer()[0], pairs)
    small, _ = producer()
    Forgetful(monkeypatch, error, rows)
    tally = Tally()
    np.testing.assert_allclose(small.log_probs(*zip(*pairs, strict=True), tally), expected, atol=1e-4)
    assert tally.halvings > 0
    assert tally.unknown == unknown_pairs(pairs)


def unknown_pairs(pairs):
    return sum(
        any(set(side.split()) - set(v.words) for side, v in zip(pair, (SOURCE, TARGET), strict=True)) for pair in pairs
    )


def test_pairs_with_unknown_words_are_counted():
    pairs = random_pairs(200)
    tally = Tally(unknown=1)
    producer()[0].log_probs(*zip(*pairs, strict=True), tally)
    assert 50 < unknown_pairs(pairs) == tally.unknown - 1


@pytest.mark.parametrize("short", [0, 1, 8192])
def test_lists_of_unequal_length_are_refused(short):
    phrases = [b"s2"] * 9000
    for rnn in (producer()[0], WordPenaltyProducer(TARGET)):
        for sides in ((phrases, phrases[:short]), (phrases[:short], phrases)):
            with pytest.raises(ValueError, match=f"expected as many targets as sources, found {len(sides[1]):,} and "):
                rnn.log_probs(*sides)


def test_a_single_phrase_that_does_not_fit_ends_the_run(monkeypatch):
    small, _ = producer()
    Forgetful(monkeypatch, OUT_OF_MEMORY[0], 0)
    with pytest.raises(MosesRnnError, match="the memory of cpu is too small for a single phrase: CUDA out of memory"):
        of_pairs(small, random_pairs(5))


def test_other_failures_are_not_taken_for_a_lack_of_memory(monkeypatch):
    Forgetful(monkeypatch, RuntimeError("mat1 and mat2 shapes cannot be multiplied"), 3)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        of_pairs(producer()[0], random_pairs(20))
