import numpy as np
import pytest
import torch

from moses_rnn.inference.encdec import EncDecStepper
from moses_rnn.inference.trie_scoring import score_trie
from moses_rnn.inference.tries import build_trie
from moses_rnn.models.encdec import SWITCHES
from moses_rnn.models.hardware import COMPILED
from moses_rnn.models.vocabulary import END_ID
from tests.models import reference
from tests.models.networks import encdec_network, weights_of


def flat(phrases):
    lengths = np.array([len(phrase) for phrase in phrases], dtype=np.int64)
    return np.array([i for phrase in phrases for i in phrase], dtype=np.int64), lengths


def score(stepper, pairs):
    """Pairs of id lists, each distinct source once."""
    sources = build_trie(*flat([source for source, _ in pairs]))
    targets = build_trie(*flat([target for _, target in pairs]), sources.leaf_of)
    return score_trie(stepper, stepper.encode(sources), targets)[targets.leaf_of]


def random_pairs(count, vocabulary=(9, 8), longest=6, seed=3):
    draw = np.random.default_rng(seed)

    def phrase(words):
        return [int(i) for i in draw.choice([0, *range(2, words)], size=draw.integers(0, longest + 1))]

    sources = [phrase(vocabulary[0]) for _ in range(max(count // 4, 1))]
    return [(sources[draw.integers(len(sources))], phrase(vocabulary[1])) for _ in range(count)]


def test_a_trie_has_every_prefix_once():
    phrases = [[5, 6], [], [5], [5, 6, 7], [5, 6], [4]]
    roots = np.array([0, 0, 0, 0, 1, 1])
    trie = build_trie(*flat(phrases), roots)
    leaves, nodes = [], set()
    paths = [(root,) for root in range(2)]
    for level in trie.levels:
        here = [(*paths[parent], word) for parent, word in zip(level.parents, level.words, strict=True)]
        assert len(set(here)) == len(here)
        assert (np.diff(level.parents) >= 0).all()
        nodes |= set(here)
        leaves += [here[i] for i in level.leaves]
        paths = [here[i] for i in level.alive]
    expected = [(root, *phrase, END_ID) for root, phrase in zip(roots, phrases, strict=True)]
    assert [leaves[i] for i in trie.leaf_of] == expected
    assert nodes == {path[:end] for path in expected for end in range(2, len(path) + 1)}
    assert (trie.nodes, trie.leaves) == (len(nodes), len(set(expected)))


ALL_SWITCHES = [
    {"summary": s, "first_step": f, "decoder_reset": d}
    for s in ("tanh", "last") for f in ("zero-embedding", "initial-state") for d in ("after", "before")
]  # fmt: skip


@pytest.mark.parametrize("switches", ALL_SWITCHES, ids=lambda s: "-".join(s.values()))
def test_equals_the_scalar_equations(switches):
    model = encdec_network(switches, dtype=torch.float64)
    pairs = random_pairs(60)
    found = score(EncDecStepper(model, dtype=torch.float64), pairs)
    weights = weights_of(model)
    for value, (source, target) in zip(found, pairs, strict=True):
        assert value == pytest.approx(
            reference.log_prob(weights, [*source, END_ID], [*target, END_ID], switches), abs=1e-11
        )


@pytest.mark.parametrize("variant", SWITCHES)
def test_sharing_changes_nothing(variant):
    model = encdec_network(SWITCHES[variant], dtype=torch.float32)
    stepper = EncDecStepper(model)
    pairs = random_pairs(300)
    together = score(stepper, pairs)
    alone = np.concatenate([score(stepper, [pair]) for pair in pairs])
    np.testing.assert_allclose(together, alone, rtol=1e-5)


def test_bfloat16_products_stay_near():
    model = encdec_network(SWITCHES["paper"], dtype=torch.float32)
    pairs = random_pairs(300)
    exact = score(EncDecStepper(model, dtype=torch.float64), pairs)
    rough = score(EncDecStepper(model, dtype=torch.bfloat16), pairs)
    assert np.abs(rough - exact).mean() < 0.02


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # inside torch, where it compiles
def test_compiled_and_eager_work_agree():
    model = encdec_network(SWITCHES["paper"], dtype=torch.float32)
    pairs = random_pairs(100)
    fused = EncDecStepper(model, kernel=COMPILED)
    np.testing.assert_allclose(score(fused, pairs), score(EncDecStepper(model), pairs), rtol=1e-5)
