"""What each network scores: its equations, in each precision, whatever the company of a pair and whoever computes."""

import importlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from moses_rnn.native import native_core
from moses_rnn.networks.compute import Compute
from moses_rnn.networks.vocabulary import END_ID
from moses_rnn.table.table_blocks import Pairs
from tests.contract.rows import ALL, CASES, FIRST, ROWS, SOURCE, TARGET, of_translation
from tests.models.pairs import of_pairs, random_pairs

PAIRS = [*random_pairs(24), (b"", b""), (b"s2 s9", b"t9 \xff"), (b" s3\t s2 ", b"\tt2  t3"), (b"s2", b"</s> <s> <unk>")]
IDS = [(SOURCE.ids(source.split()), TARGET.ids(target.split())) for source, target in PAIRS]
CHUNKS = {  # how much is done at once, on which no score depends
    "models.phrases.PAIRS": 7,
    "networks.steps.LOGITS_AT_ONCE": 24,
    "networks.tries.TRIE_CELLS": 10,
    "networks.rnnsearch.ENERGIES_AT_ONCE": 100,
    "networks.rnnlm.WORDS": 20,
    "networks.transformer.READERS": 3,
    "networks.transformer.CELLS": 40,
    "networks.n_grams.ROWS": 16,
}
needs_native = pytest.mark.skipif(native_core() is None, reason="the native core was not built, or is switched off")
TORCH, NATIVE = Compute(), Compute(native=True)
WAYS = [pytest.param(case, TORCH) for case in FIRST]
WAYS += [pytest.param(case, NATIVE, marks=needs_native) for case in CASES if case.architecture.native]
WRITTEN = [way for way in WAYS if way.values[0].row.learned is of_translation]


def scores(model, compute, pairs=PAIRS):
    return model.make_scorer(compute).log_probs(Pairs.of(pairs))


def name(value):
    return {TORCH: "torch", NATIVE: "native"}.get(value, str(value)) if isinstance(value, Compute) else str(value)


def test_every_network_has_its_record():
    assert ROWS.keys() == ALL.keys()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_scores_are_those_of_the_equations(case):
    exact, single = case.make(), case.make(torch.float32)
    as_is = case.opened(exact), case.opened(single)
    rounded = case.architecture.words is not None and "order" in single.config.__dict__  # sums are float32
    off = {"rel": 1e-5} if rounded else {"abs": 1e-10}
    assert scores(as_is[0], Compute(precision="fp64")) == pytest.approx(case.expected(exact, IDS), **off)
    for compute in [TORCH] + [NATIVE] * bool(case.architecture.native and native_core()):
        assert scores(as_is[1], compute) == pytest.approx(case.expected(single, IDS), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("case", FIRST, ids=str)
def test_rounded_products_stay_near(case):
    model = case.opened(case.make(torch.float32, scale=0.3))
    off = np.abs(scores(model, Compute(precision="bf16")) - scores(model, TORCH))
    assert off.mean() < 0.05
    assert off.any() or case.key == "bigrams"  # which has no products


@pytest.mark.parametrize(("case", "compute"), WRITTEN, ids=name)
def test_likely_pairs_keep_their_relative_precision(case, compute):
    """Near p = 1, log p is the small difference of two large numbers if it is computed carelessly."""
    model = case.make(torch.float32)
    for key, tensor in model.state_dict().items():
        if "b_G" in key:
            tensor[END_ID] = 14.0
    (expected,) = case.expected(model, [([2, 3], [])])
    assert -1e-2 < expected < 0
    assert scores(case.opened(model), compute, [(b"s2 s3", b"")]) == pytest.approx([expected], rel=1e-4)


@pytest.mark.parametrize(("case", "compute"), WAYS, ids=name)
def test_a_score_depends_on_its_pair_alone(case, compute, monkeypatch):
    exact = compute.native or case.architecture.words is not None
    near = {"rtol": 0, "atol": 0} if exact else {"rtol": 1e-5, "atol": 1e-6}
    scorer, pairs = case.opened().make_scorer(compute), random_pairs(1500 if exact else 150)
    together = of_pairs(scorer, pairs)
    assert of_pairs(scorer, []).shape == (0,)
    assert of_pairs(scorer, pairs).tobytes() == together.tobytes()
    order = np.random.default_rng(0).permutation(len(pairs))
    np.testing.assert_allclose(of_pairs(scorer, [pairs[i] for i in order]), together[order], **near)
    np.testing.assert_allclose(np.concatenate([of_pairs(scorer, [pair]) for pair in pairs[:30]]), together[:30], **near)
    for threads in (2, 1):
        torch.set_num_threads(threads)
        np.testing.assert_allclose(of_pairs(scorer, pairs), together, **near)
    with ThreadPoolExecutor(3) as pool:
        parts = list(pool.map(lambda first: of_pairs(scorer, pairs[first : first + 40]), range(0, len(pairs), 40)))
    np.testing.assert_allclose(np.concatenate(parts), together, **near)
    for place, value in CHUNKS.items():
        module, _, constant = place.rpartition(".")
        monkeypatch.setattr(importlib.import_module(f"moses_rnn.{module}"), constant, value)
        np.testing.assert_allclose(of_pairs(scorer, pairs), together, **near)
