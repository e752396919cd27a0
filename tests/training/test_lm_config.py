"""Presets of language models, and what a request overrides."""

import dataclasses

import pytest

from moses_rnn.training.config import CSLM_PRESETS
from moses_rnn.training.lm_config import NETWORKS, SHOWN, LanguageModelRequest

NOTHING = {field.name: None for field in dataclasses.fields(LanguageModelRequest)}
GIVEN = {"seed": 1, "device": "cpu", "precision": "fp32"}


def request(network, **options):
    return LanguageModelRequest(**NOTHING | GIVEN | {"network": network, "preset": "small"} | options)


def test_the_papers_presets_are_the_papers():
    bengio, rnnlm = NETWORKS["bengio"]["paper"], NETWORKS["rnnlm"]["paper"]
    assert bengio.network == {"order": 5, "embedding_size": 60, "hidden_size": 50, "direct": True}
    training = bengio.training
    assert (training.optimiser, training.learning_rate, training.schedule) == ("sgd", 1e-3, "inverse-time")
    assert training.weight_decay == 1e-4
    assert (rnnlm.network, rnnlm.min_count, rnnlm.learning) == ({"hidden_size": 250}, 5, {"bptt": 1})
    training = rnnlm.training
    assert (training.optimiser, training.learning_rate, training.schedule) == ("sgd", 0.1, "newbob")
    assert training.initial_deviation == 0.1


@pytest.mark.parametrize("preset", CSLM_PRESETS)
def test_those_of_the_cslm_are_what_they_were(preset):
    cslm, given = CSLM_PRESETS[preset], NETWORKS["cslm"][preset]
    sizes = {name: getattr(cslm, name) for name in ("order", "embedding_size", "first_size", "second_size")}
    assert (given.network, given.training, given.shortlist) == (sizes, cslm.training, cslm.shortlist)
    assert (given.learning, given.min_count) == ({"self_normalise": 0.0}, 1)


def test_a_request_overrides_its_preset_and_nothing_else():
    preset = NETWORKS["rnnlm"]["small"]
    assert request("rnnlm").chosen_preset() == preset
    changed = request("rnnlm", hidden_size=60, bptt=1, min_count=5, dropout=0.5, initial_deviation=1.0).chosen_preset()
    assert changed.network == {"hidden_size": 60}
    assert (changed.learning, changed.min_count) == ({"bptt": 1}, 5)
    assert changed.training == dataclasses.replace(preset.training, dropout=0.5, initial_deviation=1.0)


def test_a_gpu_has_the_paper_s_preset():
    assert request("bengio", preset=None, device="cuda").chosen_preset() == NETWORKS["bengio"]["paper"]


REFUSED = [
    ("rnnlm", {"order": 5}, "--order: --network rnnlm has no such size or switch"),
    ("rnnlm", {"self_normalise": 0.1}, "--self-normalise: --network rnnlm has no such size or switch"),
    ("cslm", {"hidden_size": 5}, "--hidden-size: --network cslm has no such size or switch"),
    ("cslm", {"direct": False}, "--direct: --network cslm has no such size or switch"),
    ("bengio", {"bptt": 1}, "--bptt: --network bengio has no such size or switch"),
    ("bengio", {"first_size": 1}, "--first-size: --network bengio has no such size or switch"),
    ("rnnlm", {"hidden_size": 0}, "--hidden-size 0: only --network bengio --direct predicts without hidden units"),
    ("bengio", {"hidden_size": 0}, "--hidden-size 0: only --network bengio --direct predicts without hidden units"),
]


@pytest.mark.parametrize(("network", "options", "message"), REFUSED)
def test_what_a_network_does_not_have_is_refused(network, options, message):
    with pytest.raises(ValueError, match=message):
        request(network, **options).chosen_preset()


def test_hidden_units_may_be_left_out_beside_direct_connections():
    assert request("bengio", hidden_size=0, direct=True).chosen_preset().network["hidden_size"] == 0


def test_presets_are_shown_in_a_line():
    assert list(SHOWN) == [
        "cslm, paper",
        "cslm, small",
        "bengio, paper",
        "bengio, small",
        "rnnlm, paper",
        "rnnlm, small",
    ]
    assert str(SHOWN["rnnlm, paper"]) == "H 250; words seen 5 times; sgd, 1 a minibatch"
    assert str(SHOWN["bengio, paper"]) == "order 5, E 60, H 50, direct True; words seen 4 times; sgd, 64 a minibatch"
