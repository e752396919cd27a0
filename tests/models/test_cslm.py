"""The CSLM against its equations, its scores against the network, its folder against damage."""

import dataclasses
import json
import math

import numpy as np
import pytest
import torch

from moses_rnn.errors import CheckpointError
from moses_rnn.inference.cslm import ROWS, NGramScores
from moses_rnn.models.checkpoint import load_checkpoint, save_checkpoint
from moses_rnn.models.cslm import CSLM, Cslm, CslmConfig, n_grams_of
from moses_rnn.models.encdec import ENCDEC
from moses_rnn.models.folders import finish_saving
from tests.models.checkpoints import cslm_checkpoint
from tests.models.networks import CSLM_CONFIG, CSLM_VOCABULARY, cslm_network


def by_the_equations(model, context, word):
    """log p(w | context), one number at a time."""
    x = [value for i in context for value in model.embedding[i].tolist()]
    layers = []
    for W, b, inputs in ((model.W_1, model.b_1, lambda: x), (model.W_2, model.b_2, lambda: layers[0])):
        layers.append(
            [
                max(0.0, sum(w * v for w, v in zip(row, inputs(), strict=True)) + c)
                for row, c in zip(W.tolist(), b.tolist(), strict=True)
            ]
        )
    scores = [
        sum(g * h for g, h in zip(row, layers[1], strict=True)) + c
        for row, c in zip(model.G.tolist(), model.b_G.tolist(), strict=True)
    ]
    return scores[word] - math.log(sum(map(math.exp, scores)))


def some_n_grams(count, config=CSLM_CONFIG):
    random = np.random.default_rng(5)
    contexts = random.integers(config.vocabulary_size + 1, size=(count, config.order - 1))
    return np.column_stack([contexts, random.integers(config.vocabulary_size, size=count)])


def test_log_p_is_that_of_the_equations():
    model, n_grams = cslm_network(), some_n_grams(50)
    expected = [by_the_equations(model, context, word) for *context, word in n_grams.tolist()]
    given = torch.from_numpy(n_grams)
    log_p, log_Z = model.log_probs(given[:, :-1], given[:, -1])
    assert log_p.tolist() == pytest.approx(expected, abs=1e-5)
    assert NGramScores(model).log_probs(n_grams) == pytest.approx(expected, abs=1e-5)
    assert NGramScores(model).log_normalisers(n_grams) == pytest.approx(log_Z.numpy(), abs=1e-5)


def test_the_paper_s_sizes_are_the_defaults():
    shapes = {name: tuple(tensor.shape) for name, tensor in Cslm(CslmConfig(100), seed=None).state_dict().items()}
    assert shapes == {
        "embedding": (101, 512),
        "W_1": (1536, 6 * 512),
        "b_1": (1536,),
        "W_2": (1024, 1536),
        "b_2": (1024,),
        "G": (100, 1024),
        "b_G": (100,),
    }


def test_all_weights_begin_uniform_within_a_hundredth():
    weights = torch.cat(
        [tensor.detach().flatten() for tensor in Cslm(CslmConfig(500, 7, 32, 64, 48), seed=1).parameters()]
    )
    assert weights.abs().max() <= 0.01
    assert weights.mean().abs() < 1e-4
    assert weights.std() == pytest.approx(0.02 / math.sqrt(12), rel=0.01)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_score_does_not_depend_on_its_company(dtype):
    config = CslmConfig(300, 7, 32, 64, 48)
    scores, n_grams = NGramScores(cslm_network(config), dtype), some_n_grams(3 * ROWS + 7, config)
    together = scores.log_probs(n_grams)
    order = np.random.default_rng(1).permutation(len(n_grams))
    assert np.array_equal(scores.log_probs(n_grams[order]), together[order])
    assert np.array_equal(scores.log_probs(n_grams[:5]), together[:5])
    assert np.array_equal(scores.log_probs(n_grams[[7, 7, 3]]), together[[7, 7, 3]])


def test_each_distinct_context_is_computed_once(monkeypatch):
    scores, computed = NGramScores(cslm_network()), []
    summary = scores.model.summary
    monkeypatch.setattr(
        scores.model, "summary", lambda contexts, *rest: computed.append(len(contexts)) or summary(contexts, *rest)
    )
    n_grams = np.tile(some_n_grams(40), (100, 1))
    assert np.array_equal(scores.log_probs(n_grams), np.tile(scores.log_probs(n_grams[:40]), 100))
    assert computed == [ROWS, ROWS]  # one block for each call


def test_nothing_to_score_is_no_score():
    assert NGramScores(cslm_network()).log_probs(np.zeros((0, 4), np.int64)).shape == (0,)
    assert NGramScores(cslm_network()).log_normalisers(np.zeros((0, 4), np.int64)).shape == (0,)


def test_n_grams_end_at_their_positions():
    flat = np.array([9, 9, 4, 5, 1, 9, 9, 6, 1])  # <s> <s> a b </s> <s> <s> c </s>
    found = n_grams_of(flat, np.array([2, 3, 4, 7, 8]), 3)
    assert found.tolist() == [[9, 9, 4], [9, 4, 5], [4, 5, 1], [9, 9, 6], [9, 6, 1]]


def test_a_folder_gives_back_what_was_saved(tmp_path):
    model = cslm_network()
    save_checkpoint(tmp_path, cslm_checkpoint(model, CSLM_VOCABULARY, {"texts": ["train.fr"]}))
    loaded = load_checkpoint(tmp_path, CSLM)
    assert (loaded.model.config, loaded.target_vocabulary.words) == (CSLM_CONFIG, CSLM_VOCABULARY.words)
    assert loaded.provenance == {"texts": ["train.fr"]}
    assert sorted(loaded.hashes) == ["model.safetensors", "target.vocab"]
    for name, tensor in model.state_dict().items():
        assert torch.equal(loaded.model.state_dict()[name], tensor)
    finish_saving(tmp_path, CSLM)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "model.safetensors", "target.vocab"]


CONFIGS = [
    ({"network": "rnnlm"}, "expected network to be 'cslm', as moses-rnn-cslm train writes it, found 'rnnlm'"),
    ({"order": 1}, "expected order to be a whole number from 2 to 64, found 1"),
    ({"order": True}, "expected order to be a whole number from 2 to 64, found True"),
    ({"first_size": 0}, "expected first_size to be a whole number from 1 to 16777216, found 0"),
    ({"second_size": 10**9}, "expected second_size to be a whole number from 1 to 16777216, found 1000000000"),
    ({"embedding_size": 7}, "expected embedding to be float32 \\(7, 7\\), found torch.float32 \\(7, 3\\)"),
]


@pytest.mark.parametrize(("changes", "message"), CONFIGS, ids=lambda value: str(value)[:30])
def test_a_config_that_fits_nothing_is_refused(tmp_path, changes, message):
    save_checkpoint(tmp_path, cslm_checkpoint(cslm_network(), CSLM_VOCABULARY))
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | changes))
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(tmp_path, CSLM)


def test_one_kind_of_network_is_not_taken_for_the_other(tmp_path):
    save_checkpoint(tmp_path, cslm_checkpoint(cslm_network(), CSLM_VOCABULARY))
    (tmp_path / "source.vocab").write_bytes(CSLM_VOCABULARY.to_bytes())
    with pytest.raises(
        CheckpointError, match="expected network to be none, as in an RNN Encoder-Decoder's config, found 'cslm'"
    ):
        load_checkpoint(tmp_path, ENCDEC)


def test_a_vocabulary_of_another_size_is_refused(tmp_path):
    save_checkpoint(tmp_path, cslm_checkpoint(cslm_network(), CSLM_VOCABULARY))
    config = json.loads((tmp_path / "config.json").read_text())
    del config["files"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "target.vocab").write_bytes(b"<unk>\n</s>\nle\n")
    with pytest.raises(CheckpointError, match="expected (embedding|G) to be float32"):
        load_checkpoint(tmp_path, CSLM)


def test_an_unknown_size_of_config_is_written(tmp_path):
    save_checkpoint(tmp_path, cslm_checkpoint(cslm_network(), CSLM_VOCABULARY))
    written = json.loads((tmp_path / "config.json").read_text())
    assert {key: written[key] for key in dataclasses.asdict(CSLM_CONFIG)} == dataclasses.asdict(CSLM_CONFIG)
