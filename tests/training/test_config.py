"""Presets of every network, what a request overrides, and what it may not ask for.

What another network has is refused in tests/contract/test_training.py.
"""

import dataclasses

import pytest

from moses_rnn.networks.cells import ENCDEC_OF_CELLS, PLAIN
from moses_rnn.networks.cstm import CSTM
from moses_rnn.networks.encdec import ENCDEC
from moses_rnn.networks.ranker import RANKER
from moses_rnn.training import lm_config, sentence_config
from moses_rnn.training.architectures import check_network, longest, slotted_network
from moses_rnn.training.cells import CELLS, cell_switches
from moses_rnn.training.config import PRESETS, TrainingConfig, UnfitOption, for_optimiser
from moses_rnn.training.run import plan_of
from tests.training.sentences import sentence_request
from tests.training.small import phrase_request
from tests.training.texts import text_request

NO_SIZES = {"hidden_size": None, "embedding_size": None, "maxout_size": None, "output_rank": None}
OF_CSTM = {**NO_SIZES, "architecture": "cstm", "max_length": 0}
OF_RANKER = {**NO_SIZES, "architecture": "ranker", "max_length": 0}
# of the papers, beside Adadelta and 64 examples a minibatch
PAPERS = {
    "encdec": (PRESETS["paper"], {"rho": 0.95, "epsilon": 1e-6}, {"hidden_size": 1000, "embedding_size": 100, "maxout_size": 500, "output_rank": 100}),
    "rnnsearch": (sentence_config.ARCHITECTURES["rnnsearch"]["paper"], {"batch_size": 80, "sort_batches": 20}, {"hidden_size": 1000, "embedding_size": 620, "alignment_size": 1000, "maxout_size": 500, "output_rank": 0}),
    "seq2seq": (
        sentence_config.ARCHITECTURES["seq2seq"]["paper"],
        {"optimiser": "sgd", "learning_rate": 0.7, "schedule": "half-epochs", "batch_size": 128, "reduction": "pair-mean", "clip_norm": 5, "max_epochs": 7.5, "initial_deviation": 0.08, "dropout": 0},
        {"layers": 4, "hidden_size": 1000, "embedding_size": 1000},
    ),
    "bengio": (lm_config.NETWORKS["bengio"]["paper"], {"optimiser": "sgd", "learning_rate": 1e-3, "schedule": "inverse-time", "weight_decay": 1e-4}, {"order": 5, "embedding_size": 60, "hidden_size": 50, "direct": True}),
    "rnnlm": (lm_config.NETWORKS["rnnlm"]["paper"], {"optimiser": "sgd", "learning_rate": 0.1, "schedule": "newbob", "batch_size": 1, "initial_deviation": 0.1}, {"hidden_size": 250}),
}  # fmt: skip


@pytest.mark.parametrize(("preset", "training", "network"), PAPERS.values(), ids=PAPERS)
def test_the_papers_presets_are_the_papers(preset, training, network):
    given = {"optimiser": "adadelta", "batch_size": 64, **training}
    assert {name: getattr(preset.training, name) for name in given} == given
    assert {name: preset.network[name] for name in network} == network


def test_shortlists_are_the_papers_too():
    seq2seq, search = (sentence_config.ARCHITECTURES[name]["paper"] for name in ("seq2seq", "rnnsearch"))
    assert (seq2seq.words_read, seq2seq.shortlist, search.shortlist) == (160_000, 80_000, 30_000)
    rnnlm = lm_config.NETWORKS["rnnlm"]["paper"]
    assert (PRESETS["paper"].shortlist, rnnlm.min_count, rnnlm.learning) == (15_000, 5, {"bptt": 1})


@pytest.mark.parametrize(("preset", "device", "chosen"), [(None, "cpu", "small"), (None, "cuda:1", "paper"), ("paper", "cpu", "paper"), ("small", "cuda", "small")])  # fmt: skip
def test_a_preset_is_the_devices_unless_it_is_named(preset, device, chosen):
    given = {"preset": preset, "device": device, "max_epochs": None}
    assert (
        plan_of(phrase_request("t", **given, **NO_SIZES)).network["hidden_size"]
        == PRESETS[chosen].network["hidden_size"]
    )
    sizes = dict.fromkeys(("hidden_size", "embedding_size", "maxout_size", "min_count", "max_length"))
    assert sentence_request("t", **given, **sizes).chosen_preset() == sentence_config.ARCHITECTURES["rnnsearch"][chosen]
    nothing = {**given, "optimiser": None, "batch_size": None, "shortlist": None, "network": "bengio"}
    assert text_request("t", "m", **nothing).chosen_preset() == lm_config.NETWORKS["bengio"][chosen]


def test_another_optimiser_brings_its_customary_learning_rate():
    small = PRESETS["small"].training
    assert for_optimiser(small, "adam") is small
    for optimiser, rate, decay in (("adadelta", 1.0, 1.0), ("adam", 1e-3, 0.5), ("sgd", 0.7, 0.5)):
        other = for_optimiser(TrainingConfig(optimiser="another"), optimiser)
        assert (other.optimiser, other.learning_rate, other.decay_on_plateau) == (optimiser, rate, decay)


def test_a_resumed_run_may_have_other_limits_and_no_other_course():
    course = TrainingConfig().course()
    limits = {"max_epochs": 3.0, "max_minutes": 1.0, "patience": 9, "save_minutes": 1.0, "threads": 4, "accumulate": 2}
    assert dataclasses.replace(TrainingConfig(), **limits).course() == course
    assert set(course) | set(limits) == {field.name for field in dataclasses.fields(TrainingConfig)}
    assert dataclasses.replace(TrainingConfig(), batch_size=1).course() != course


def test_a_request_overrides_its_preset_and_nothing_else():
    preset = PRESETS["small"].training
    assert phrase_request("t", max_epochs=None).learning(preset) == preset
    changed = phrase_request("t", max_epochs=None, optimiser="adadelta", dropout=0.0, batch_size=8, seed=5)
    expected = dataclasses.replace(for_optimiser(preset, "adadelta"), dropout=0.0, batch_size=8, seed=5)
    assert changed.learning(preset) == expected
    preset = sentence_request("t", phases="groundhog", min_count=3, partition_words=9, reshuffle=True).chosen_preset()
    assert (preset.network["phases"], preset.min_count) == ("groundhog", 3)
    assert (preset.training.partition_words, preset.training.reshuffle) == (9, True)
    preset = text_request("t", "m", network="rnnlm", hidden_size=60, bptt=1, min_count=5, dropout=0.5).chosen_preset()
    assert (preset.network, preset.learning, preset.min_count) == ({"hidden_size": 60}, {"bptt": 1}, 5)
    assert preset.training.dropout == 0.5


def test_networks_with_slots_have_no_longer_pairs_and_begin_otherwise():
    assert slotted_network(phrase_request("t", **OF_RANKER, corrupt="any", slots=3)) == {
        "slots": 3, "embedding_size": 64, "hidden_size": 256, "corrupt": "any",
    }  # fmt: skip
    lengths = [
        longest(phrase_request("t", **given)) for given in (OF_CSTM, OF_CSTM | {"max_length": 2}, {"max_length": 0})
    ]
    assert lengths == [7, 2, 0]
    for given, kind, deviations in ((OF_CSTM, CSTM, (0.1, 0.01)), (OF_RANKER, RANKER, (0.1, 0.1))):
        plans = [plan_of(phrase_request("t", **given, slots=3, preset=preset)) for preset in ("small", "paper")]
        assert [(plan.kind, plan.corpus.max_length) for plan in plans] == [(kind, 3)] * 2
        assert tuple(plan.training.initial_deviation for plan in plans) == deviations


SWITCHES = {
    "as the paper": ({}, None),
    "named as the paper": ({"encoder_reset": "before"}, None),
    "gru": ({"encoder_reset": "after"}, {"encoder_reset": "after"}),
    "tanh": ({"cell": "tanh"}, {}),
    "leaky": ({"cell": "leaky"}, {"leaky_share": 0.25}),
    "no leak": ({"cell": "leaky", "leaky_share": 0.0}, {"leaky_share": 0.0}),
    "lstm": ({"cell": "lstm"}, {"forget_bias": 1.0}),
    "no bias": ({"cell": "lstm-peephole", "forget_bias": 0.0}, {"forget_bias": 0.0}),
}


@pytest.mark.parametrize(("given", "meant"), SWITCHES.values(), ids=SWITCHES)
def test_a_switch_that_means_nothing_for_a_cell_is_none_and_the_papers_cell_has_none(given, meant):
    request = phrase_request("t", **given)
    switches, plan = cell_switches(request), plan_of(request)
    if meant is None:
        assert (switches, plan.kind) == ({}, ENCDEC)
    else:
        assert {name: value for name, value in switches.items() if value is not None} == {
            "cell": "gru",
            **given,
            **meant,
        }
        assert plan.kind is ENCDEC_OF_CELLS
    assert set(CELLS) == {"gru", *PLAIN}


def test_switches_name_their_variant():
    for given, variant in (
        ({"variant": "groundhog"}, "groundhog"),
        ({"decoder_reset": "before"}, "custom"),
        (
            {"variant": "groundhog", "summary": "tanh", "first_step": "zero-embedding", "decoder_reset": "after"},
            "paper",
        ),
    ):
        assert plan_of(phrase_request("t", **given)).network["variant"] == variant


REFUSED = [
    (phrase_request("t", encoder_reset="after", cell="tanh"), "encoder_reset: cell tanh"),
    (phrase_request("t", decoder_reset="after", cell="lstm"), "decoder_reset: cell lstm"),
    (phrase_request("t", leaky_share=0.0), "leaky_share: cell gru"),
    (phrase_request("t", forget_bias=0.0, cell="leaky"), "forget_bias: cell leaky"),
    (phrase_request("t", **OF_CSTM, variant="groundhog"), "variant: --architecture cstm"),
    (phrase_request("t", **OF_CSTM, cell="lstm"), "cell: --architecture cstm"),
    (phrase_request("t", **OF_RANKER, sampled_words=3), "sampled_words: --architecture ranker"),
    (phrase_request("t", **OF_RANKER | {"slots": 3, "max_length": 4}), "max_length: expected at most the 3 slots"),
    (sentence_request("t", reshuffle=True), "reshuffle: is for partition_words"),
    (sentence_request("t", rare_window=3), "rare_window: is for --rare"),
    (sentence_request("t", rare="noalign", rare_window=3), "rare_window: --rare noalign writes no distances"),
    (sentence_request("t", alignment="a"), "alignment: is for --rare"),
    (sentence_request("t", dev_alignment="a"), "dev_alignment: is for --rare"),
    (sentence_request("t", rare="posunk"), "rare: posunk needs --alignment"),
    (sentence_request("t", rare="copyable", alignment="a", dev="d"), "rare: copyable needs --dev-alignment"),
    (sentence_request("t", rare="noalign", dev_alignment="a"), "dev_alignment: is for --dev"),
    (sentence_request("t", rare="noalign", architecture="rnnenc"), "rare: --architecture rnnenc has no such option"),
    (text_request("t", "m", network="rnnlm", self_normalise=0.1), "self_normalise: --network rnnlm has no such"),
    (text_request("t", "m", network="bengio", bptt=1), "bptt: --network bengio has no such option"),
    (
        text_request("t", "m", network="bengio", hidden_size=0),
        "hidden_size: only --network bengio with direct connections",
    ),
]
ACCEPTED = [
    phrase_request("t", encoder_reset="after", decoder_reset="before"),
    phrase_request("t", cell="lstm", forget_bias=0.0),
    phrase_request("t", **OF_CSTM, slots=9, sampled_words=9),
    sentence_request("t", rare="noalign", dev="d"),
    text_request("t", "m", network="bengio", hidden_size=0, direct=True),
]


def check(request):
    return request.chosen_preset() if hasattr(request, "chosen_preset") else check_network(request)


@pytest.mark.parametrize(("request_", "message"), REFUSED, ids=lambda value: value if isinstance(value, str) else "")
def test_what_does_not_go_together_is_refused(request_, message):
    with pytest.raises(ValueError, match=message):
        check(request_)


def test_what_goes_together_is_not():
    for request in ACCEPTED:
        check(request)


def test_weights_do_not_decay_under_adadelta():
    """Which would leave the option out without a word."""
    preset = PRESETS["paper"].training
    assert phrase_request("t", weight_decay=0.1, optimiser="adam").learning(preset).weight_decay == 0.1
    assert phrase_request("t", weight_decay=0.0).learning(preset).weight_decay == 0.0
    with pytest.raises(UnfitOption, match="weight_decay: expected the optimiser adam or sgd, found adadelta"):
        phrase_request("t", weight_decay=0.1).learning(preset)
