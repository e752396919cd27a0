"""The recurrent language model against its equations, by hand and number by number; how far errors go back."""

import json
import math

import pytest
import torch
from torch.autograd import gradcheck

from moses_rnn.errors import CheckpointError
from moses_rnn.models.batches import Batch
from moses_rnn.models.checkpoint import load_checkpoint, save_checkpoint
from moses_rnn.models.rnnlm import RNNLM, Rnnlm, RnnlmConfig, grad_sums
from moses_rnn.models.vocabulary import END_ID
from tests.models import reference_rnnlm
from tests.models.checkpoints import rnnlm_checkpoint
from tests.models.networks import CSLM_VOCABULARY, rnnlm_network, some_sentences, weights_of


def batch_of(sentences):
    return Batch.from_lists(sorted(sentences, key=len, reverse=True))


def by_sentences(batch, values):
    """Packed values as a list for each sentence."""
    rows = batch.rows().tolist()
    return [
        [value for value, row in zip(values.tolist(), rows, strict=True) if row == i] for i in range(batch.active[0])
    ]


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-4)])
@pytest.mark.parametrize("hidden_size", [1, 5])
def test_log_p_is_that_of_the_equations(hidden_size, dtype, tolerance):
    model, sentences = rnnlm_network(hidden_size, dtype=dtype), some_sentences(20)
    weights, batch = weights_of(model), batch_of(sentences)
    given = by_sentences(batch, model.word_log_probs(batch))
    for ids, values in zip(sorted(sentences, key=len, reverse=True), given, strict=True):
        expected = reference_rnnlm.log_probs(weights, [*ids, END_ID])
        assert values == pytest.approx(expected, rel=tolerance, abs=tolerance if dtype == torch.float64 else None)


def test_a_network_of_three_words_by_hand():
    """One unit: s_1 = σ(e(<s>) + 0.1 u), s_2 = σ(e(w) + u s_1); words <unk>, </s>, a, and <s>."""
    model = Rnnlm(RnnlmConfig(3, 1), seed=None).double()
    e, u, g = [0.5, 9.0, -1.0, 0.25], 2.0, [1.0, -1.0, 0.5]
    with torch.no_grad():
        model.embedding.copy_(torch.tensor(e)[:, None])
        model.U.fill_(u)
        model.G.copy_(torch.tensor(g)[:, None])

    def sigma(x):
        return 1 / (1 + math.exp(-x))

    def log_p(s, word):
        return g[word] * s - math.log(sum(math.exp(x * s) for x in g))

    s_1 = sigma(0.25 + 0.1 * u)
    s_2 = sigma(-1.0 + u * s_1)
    s_3 = sigma(0.5 + u * s_2)
    expected = [log_p(s_1, 2), log_p(s_2, 0), log_p(s_3, END_ID)]
    assert model.word_log_probs(Batch.from_lists([[2, 0]])).tolist() == pytest.approx(expected, abs=1e-12)


def test_all_words_together_have_probability_1():
    weights = weights_of(rnnlm_network())
    for p in reference_rnnlm.distributions(weights, [2, 3, 0, END_ID]):
        assert sum(p) == pytest.approx(1, abs=1e-12)
    model = rnnlm_network()
    after = [[2, 3, word] for word in range(6) if word != END_ID]
    last = [model.word_log_probs(Batch.from_lists([ids]))[2].exp().item() for ids in after]
    end = model.word_log_probs(Batch.from_lists([[2, 3]]))[2].exp().item()
    assert sum(last) + end == pytest.approx(1, abs=1e-12)


def test_gradients_are_those_of_finite_differences():
    model = rnnlm_network().requires_grad_(True)
    batch = batch_of(some_sentences(4))

    def log_probs(embedding, U, G):
        other = rnnlm_network()
        del other.embedding, other.U, other.G
        other.embedding, other.U, other.G = embedding, U, G
        return other.word_log_probs(batch)

    assert gradcheck(log_probs, (model.embedding, model.U, model.G))


@pytest.mark.parametrize("reach", [0, 1, 2, 3, 99])
def test_errors_go_back_as_far_as_they_shall(reach):
    model, sentences = rnnlm_network().requires_grad_(True), some_sentences(8)
    nats = -model.word_log_probs(batch_of(sentences), reach=reach).sum()
    given = dict(zip(("embedding", "U", "G"), torch.autograd.grad(nats, list(model.parameters())), strict=True))
    weights = weights_of(model)
    expected = reference_rnnlm.zeros_like(weights)
    for ids in sentences:
        for name, rows in reference_rnnlm.sentence_gradient(weights, [*ids, END_ID], reach).items():
            expected[name] = (torch.tensor(expected[name]) + torch.tensor(rows)).tolist()
    for name, rows in expected.items():
        torch.testing.assert_close(given[name], torch.tensor(rows, dtype=torch.float64), rtol=1e-6, atol=1e-6)


def test_errors_of_the_whole_sentence_are_those_of_every_reach_beyond_it():
    random = torch.Generator().manual_seed(1)
    active = [4, 3, 3, 1]
    grads, states = (torch.rand(sum(active), 5, generator=random, dtype=torch.float64) for _ in range(2))
    U = torch.randn(5, 5, generator=random, dtype=torch.float64)
    whole = grad_sums(grads, states, U, active, 0)
    torch.testing.assert_close(grad_sums(grads, states, U, active, 4), whole, rtol=0, atol=1e-12)
    assert (grad_sums(grads, states, U, active, 3) - whole).abs().max() > 1e-3


def test_batch_mates_and_padding_change_nothing():
    model, sentences = rnnlm_network(dtype=torch.float32), some_sentences(30)
    batch = batch_of(sentences)
    together = by_sentences(batch, model.word_log_probs(batch))
    for ids, values in zip(sorted(sentences, key=len, reverse=True), together, strict=True):
        assert model.word_log_probs(Batch.from_lists([ids])).tolist() == pytest.approx(values, rel=1e-5)


def test_dropout_leaves_units_out_of_words_and_states_but_not_on_the_way():
    model, seen = rnnlm_network(), []
    batch = Batch.from_lists([[2, 3]])
    model.word_log_probs(batch, drop=lambda x: seen.append(x) or x)
    e, s = seen
    assert torch.equal(e, model.embedding[[6, 2, 3]])
    weights = weights_of(model)
    expected = reference_rnnlm.next_state(weights, 6, reference_rnnlm.first_state(weights))
    assert s[0].tolist() == pytest.approx(expected)


def test_tensors_have_their_names_and_shapes():
    shapes = {name: tuple(tensor.shape) for name, tensor in Rnnlm(RnnlmConfig(100), seed=None).state_dict().items()}
    assert shapes == {"embedding": (101, 250), "U": (250, 250), "G": (100, 250)}


def test_equal_seeds_give_equal_weights_of_the_paper_s_deviation():
    first, again, other = (Rnnlm(RnnlmConfig(500, 60), seed=seed) for seed in (1, 1, 2))
    for a, b, c in zip(first.parameters(), again.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
        assert not torch.equal(a, c)
        assert a.std().item() == pytest.approx(0.1, rel=0.05)


def test_a_folder_gives_back_what_was_saved(tmp_path):
    model = rnnlm_network(dtype=torch.float32)
    save_checkpoint(tmp_path, rnnlm_checkpoint(model, CSLM_VOCABULARY, {"texts": ["train.fr"]}))
    written = json.loads((tmp_path / "config.json").read_text())
    expected = {
        "format": 2, "network": "rnnlm", "unit": "sentences", "direction": "source-to-target", "rare": None,
        "target_vocabulary_size": 6, "hidden_size": 5,
    }  # fmt: skip
    assert {key: written[key] for key in expected} == expected
    loaded = load_checkpoint(tmp_path, RNNLM)
    assert loaded.model.config == model.config
    before = (tmp_path / "model.safetensors").read_bytes(), (tmp_path / "config.json").read_bytes()
    save_checkpoint(tmp_path, loaded)
    assert ((tmp_path / "model.safetensors").read_bytes(), (tmp_path / "config.json").read_bytes()) == before


CONFIGS = [
    ({"network": "bengio"}, "expected network to be 'rnnlm', found 'bengio'"),
    ({"format": 1}, "expected format to be 2, the format this version reads, found 1"),
    ({"hidden_size": 0}, "expected hidden_size to be a whole number from 1 to 16777216, found 0"),
    ({"hidden_size": 4}, "expected embedding to be float32 \\(7, 4\\), found torch.float32 \\(7, 5\\)"),
    ({"target_vocabulary_size": 5}, "expected target_vocabulary_size to be 6, the words of target.vocab, found 5"),
    ({"direction": None}, "expected direction to be 'source-to-target', as it models targets, found None"),
]


@pytest.mark.parametrize(("changes", "message"), CONFIGS, ids=lambda value: str(value)[:40])
def test_a_config_that_fits_nothing_is_refused(tmp_path, changes, message):
    save_checkpoint(tmp_path, rnnlm_checkpoint(rnnlm_network(dtype=torch.float32), CSLM_VOCABULARY))
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | changes))
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(tmp_path, RNNLM)


def test_a_model_that_was_cut_short_is_refused(tmp_path):
    save_checkpoint(tmp_path, rnnlm_checkpoint(rnnlm_network(dtype=torch.float32), CSLM_VOCABULARY))
    model = (tmp_path / "model.safetensors").read_bytes()
    for length in (0, len(model) // 2, len(model) - 1):
        (tmp_path / "model.safetensors").write_bytes(model[:length])
        with pytest.raises(CheckpointError):
            load_checkpoint(tmp_path, RNNLM)
