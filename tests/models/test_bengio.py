"""Bengio's network against its equations, its folder against damage."""

import dataclasses
import itertools
import json

import pytest
import torch
from torch.autograd import gradcheck
from torch.func import functional_call

from moses_rnn.errors import CheckpointError
from moses_rnn.models.bengio import BENGIO, Bengio, BengioConfig
from moses_rnn.models.checkpoint import load_checkpoint, save_checkpoint
from tests.models import reference_bengio
from tests.models.checkpoints import bengio_checkpoint, cslm_checkpoint
from tests.models.networks import (
    BENGIO_SWITCHES,
    CSLM_VOCABULARY,
    bengio_network,
    cslm_network,
    some_n_grams,
    weights_of,
)

SWITCHES = pytest.mark.parametrize(
    "switches", BENGIO_SWITCHES, ids=lambda switches: "-".join(map(str, switches.values()))
)


def n_grams_for(model, count=40):
    """Contexts and words for a network, as tensors."""
    n_grams = torch.from_numpy(some_n_grams(count, SizesAsOfCslm(model.config.order)))
    return n_grams[:, :-1], n_grams[:, -1]


@dataclasses.dataclass
class SizesAsOfCslm:
    order: int
    vocabulary_size: int = len(CSLM_VOCABULARY)


@SWITCHES
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-4)])
def test_log_p_is_that_of_the_equations(switches, dtype, tolerance):
    model = bengio_network(switches, dtype=dtype)
    weights, (contexts, words) = weights_of(model), n_grams_for(model)
    log_p, log_Z = model.log_probs(contexts, words)
    expected = [
        reference_bengio.log_prob(weights, context, word)
        for context, word in zip(contexts.tolist(), words.tolist(), strict=True)
    ]
    assert log_p.tolist() == pytest.approx(expected, abs=tolerance if dtype == torch.float64 else None, rel=tolerance)
    assert torch.isfinite(log_Z).all()


@SWITCHES
def test_all_words_together_have_probability_1(switches):
    model = bengio_network(switches)
    contexts, _ = n_grams_for(model, 10)
    every = torch.arange(model.words)
    for context in contexts:
        log_p, _ = model.log_probs(context.expand(len(every), -1), every)
        assert log_p.exp().sum().item() == pytest.approx(1, abs=1e-12)


@SWITCHES
def test_gradients_are_those_of_finite_differences(switches):
    model = bengio_network(switches).requires_grad_(True)
    names = [name for name, _ in model.named_parameters()]
    contexts, words = n_grams_for(model, 6)

    def both(*weights):
        return _log_probs(model, dict(zip(names, weights, strict=True)), contexts, words)

    assert gradcheck(both, tuple(model.parameters()))


def _log_probs(model, weights, contexts, words):
    class Whole(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self):
            return self.model.log_probs(contexts, words)

    return functional_call(Whole(), {f"model.{name}": tensor for name, tensor in weights.items()})


def test_direct_connections_of_no_weight_are_none():
    plain, direct = (bengio_network({"order": 4, "hidden_size": 5, "direct": direct}) for direct in (False, True))
    direct.load_state_dict({**plain.state_dict(), "W": torch.zeros_like(direct.W)})
    contexts, words = n_grams_for(plain)
    torch.testing.assert_close(direct.log_probs(contexts, words), plain.log_probs(contexts, words), rtol=0, atol=1e-12)


def test_without_hidden_units_the_logits_are_linear_in_the_embeddings():
    model = bengio_network({"order": 2, "hidden_size": 0, "direct": True})
    contexts = torch.arange(model.words + 1)[:, None]
    logits = model.summary(contexts) @ model.output.T + model.b_G
    assert torch.equal(logits, model.embedding @ model.W.T + model.b_G)


def test_the_paper_s_network_has_the_paper_s_number_of_weights():
    """Section 2.1 of the paper has |V|(1 + nm + h) + h(1 + (n - 1)m); there is a row of `<s>` more."""
    with torch.device("meta"):
        model = Bengio(BengioConfig(16_383), seed=None)
    assert sum(tensor.numel() for tensor in model.parameters()) == 5_762_483 + 60 == 5_762_543


def test_tensors_have_their_names_and_shapes():
    shapes = {name: tuple(tensor.shape) for name, tensor in bengio_network().state_dict().items()}
    assert shapes == {"embedding": (7, 3), "W_1": (5, 9), "b_1": (5,), "G": (6, 5), "W": (6, 9), "b_G": (6,)}
    assert "W" not in bengio_network({"order": 4, "hidden_size": 5, "direct": False}).state_dict()
    without = bengio_network({"order": 4, "hidden_size": 0, "direct": True}).state_dict()
    assert list(without) == ["embedding", "W", "b_G"]


def test_neither_hidden_units_nor_direct_connections_predict_nothing():
    with pytest.raises(ValueError, match="expected hidden units or direct connections, found neither"):
        BengioConfig(6, hidden_size=0, direct=False)


def test_equal_seeds_give_equal_weights_within_a_hundredth():
    first, again, other = (Bengio(BengioConfig(50), seed=seed) for seed in (1, 1, 2))
    for a, b, c in zip(first.parameters(), again.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
        assert not torch.equal(a, c)
        assert a.abs().max() <= 0.01


def test_dropout_leaves_units_out_of_both_layers():
    seen = []
    model = bengio_network()
    model.summary(n_grams_for(model, 3)[0], drop=lambda x: seen.append(x.shape[1]) or torch.zeros_like(x))
    assert seen == [9, 5]


@SWITCHES
def test_a_folder_gives_back_what_was_saved(tmp_path, switches):
    model = bengio_network(switches, dtype=torch.float32)
    save_checkpoint(tmp_path, bengio_checkpoint(model, CSLM_VOCABULARY, {"texts": ["train.fr"]}))
    written = json.loads((tmp_path / "config.json").read_text())
    common = {"format": 2, "network": "bengio", "unit": "sentences", "direction": "source-to-target", "rare": None}
    sizes = {"target_vocabulary_size": 6, "embedding_size": 3, **switches}
    assert {key: written[key] for key in (*common, *sizes)} == {**common, **sizes}
    loaded = load_checkpoint(tmp_path, BENGIO)
    assert (loaded.model.config, loaded.target_vocabulary.words) == (model.config, CSLM_VOCABULARY.words)
    assert loaded.unit == "sentences"
    before = (tmp_path / "model.safetensors").read_bytes(), (tmp_path / "config.json").read_bytes()
    save_checkpoint(tmp_path, loaded)
    assert ((tmp_path / "model.safetensors").read_bytes(), (tmp_path / "config.json").read_bytes()) == before


CONFIGS = [
    ({"network": "cslm"}, "expected network to be 'bengio', found 'cslm'"),
    ({"format": 1}, "expected format to be 2, the format this version reads, found 1"),
    ({"order": 1}, "expected order to be a whole number from 2 to 64, found 1"),
    ({"hidden_size": -1}, "expected hidden_size to be a whole number from 0 to 16777216, found -1"),
    ({"hidden_size": False}, "expected hidden_size to be a whole number from 0 to 16777216, found False"),
    ({"hidden_size": 6}, "expected W_1 to be float32 \\(6, 9\\), found torch.float32 \\(5, 9\\)"),
    ({"embedding_size": 2}, "expected embedding to be float32 \\(7, 2\\), found torch.float32 \\(7, 3\\)"),
    ({"direct": 1}, "expected direct to be true or false, found 1"),
    ({"direct": False}, "expected the tensors of a NPLM of Bengio et al., differing in \\['W'\\]"),
    ({"hidden_size": 0, "direct": False}, "expected direct to be true without hidden units, found False"),
    ({"target_vocabulary_size": 7}, "expected target_vocabulary_size to be 6, the words of target.vocab, found 7"),
    ({"rare": "posunk"}, "expected rare to be None, found 'posunk'"),
    ({"direction": "target-to-source"}, "expected direction to be 'source-to-target', as it models targets, found"),
    ({"unit": "words"}, "expected unit to be 'sentences' or 'phrases', found 'words'"),
]


@pytest.mark.parametrize(("changes", "message"), CONFIGS, ids=lambda value: str(value)[:40])
def test_a_config_that_fits_nothing_is_refused(tmp_path, changes, message):
    save_checkpoint(tmp_path, bengio_checkpoint(bengio_network(dtype=torch.float32), CSLM_VOCABULARY))
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | changes))
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(tmp_path, BENGIO)


def test_a_model_that_was_cut_short_is_refused(tmp_path):
    save_checkpoint(tmp_path, bengio_checkpoint(bengio_network(dtype=torch.float32), CSLM_VOCABULARY))
    for name, content in [(path.name, path.read_bytes()) for path in tmp_path.iterdir()]:
        for length in (0, len(content) // 2, len(content) - 1):
            (tmp_path / name).write_bytes(content[:length])
            if name != "config.json" or length < len(content) - 1:  # which ends with a line end
                with pytest.raises(CheckpointError):
                    load_checkpoint(tmp_path, BENGIO)
        (tmp_path / name).write_bytes(content)


def test_a_cslm_is_not_taken_for_it(tmp_path):
    save_checkpoint(tmp_path, cslm_checkpoint(cslm_network(), CSLM_VOCABULARY))
    with pytest.raises(CheckpointError, match="expected format to be 2, the format this version reads, found 1"):
        load_checkpoint(tmp_path, BENGIO)


def test_a_sentence_of_the_reference_is_the_product_of_its_n_grams():
    weights = weights_of(bengio_network({"order": 2, "hidden_size": 5, "direct": True}))
    sentences = itertools.product((0, 2, 3), repeat=2)
    for ids in sentences:
        parts = [6, *ids], [*ids, 1]
        expected = sum(reference_bengio.log_prob(weights, [h], w) for h, w in zip(*parts, strict=True))
        assert reference_bengio.sentence_log_prob(weights, [*ids, 1], 2) == pytest.approx(expected, abs=1e-12)
