"""Presets of every network, what options override, and which do not go together.

What another network has is refused in tests/contract/test_training.py.
"""

import dataclasses

import pytest

from moses_rnn.networks.cells import ENCDEC_OF_CELLS
from moses_rnn.networks.cstm import CSTM
from moses_rnn.networks.encdec import ENCDEC
from moses_rnn.networks.ranker import RANKER
from moses_rnn.training.materials import Watch
from moses_rnn.training.presets import ALL, NETWORKS, TrainingConfig, for_optimiser
from moses_rnn.training.train import configure, plan_of
from moses_rnn.training.training_options import choose
from tests.training.small import never, phrase_options, sentence_options, text_options

PRESETS = NETWORKS["encdec"].presets
NO_SIZES = {"hidden_size": None, "embedding_size": None, "maxout_size": None, "output_rank": None}
OF_CSTM = {**NO_SIZES, "architecture": "cstm", "max_length": 0}
OF_RANKER = {**NO_SIZES, "architecture": "ranker", "max_length": 0}
# by the papers, beside Adadelta and 64 examples per minibatch
PAPERS = {
    "encdec": ((0, 15_000, 1), {"rho": 0.95, "epsilon": 1e-6, "clip_norm": 0}),
    "rnnsearch": ((0, 30_000, 1), {"batch_size": 80, "sort_batches": 20}),
    "seq2seq": (
        (160_000, 80_000, 1),
        {"optimiser": "sgd", "learning_rate": 0.7, "schedule": "half-epochs", "batch_size": 128, "reduction": "pair-mean", "clip_norm": 5, "max_epochs": 7.5, "initial_deviation": 0.08, "dropout": 0},
    ),
    "transformer": (
        (0, 37_000, 1),
        {"optimiser": "adam", "beta_2": 0.98, "learning_rate": 512**-0.5 * 4000**-0.5, "warm_up": 4000, "schedule": "inverse-root", "batch_size": 80, "batch_words": 25_000, "label_smoothing": 0.1, "dropout": 0.1, "clip_norm": 0},
    ),
    "bengio": ((0, ALL, 4), {"optimiser": "sgd", "learning_rate": 1e-3, "schedule": "inverse-time", "weight_decay": 1e-4}),
    "rnnlm": ((0, ALL, 5), {"optimiser": "sgd", "learning_rate": 0.1, "schedule": "newbob", "batch_size": 1, "initial_deviation": 0.1}),
}  # fmt: skip


@pytest.mark.parametrize("name", PAPERS)
def test_the_papers_presets_are_the_papers(name):
    """Their sizes are the defaults of the networks."""
    preset, (kind, config), (words, training) = NETWORKS[name].presets["paper"], configure(name, {}), PAPERS[name]
    assert {"optimiser": "adadelta", "batch_size": 64, **training}.items() <= vars(preset.training).items()
    assert (preset.words_read, preset.shortlist, preset.min_count) == words
    assert configure(name, preset.network) == (kind, config)


@pytest.mark.parametrize(
    ("given", "shared"), [({}, False), ({"subwords": 9}, True), ({"subwords": 9, "shared": False}, False)]
)
def test_a_transformer_of_subwords_shares_its_embeddings(given, shared):
    assert choose({"architecture": "transformer", "device": "cpu", **given})[1].network["shared"] is shared


def test_adam_and_sgd_halve_their_rate_on_a_plateau_in_all_presets():
    configs = [preset.training for network in NETWORKS.values() for preset in network.presets.values()]
    assert {config.decay_on_plateau for config in configs if config.optimiser != "adadelta"} == {0.5}


@pytest.mark.parametrize(("preset", "chosen"), [(None, "small"), ("paper", "paper"), ("small", "small")])
def test_the_preset_is_small_unless_it_is_named(preset, chosen):
    given = {"preset": preset, "device": "cuda", "max_epochs": None}
    sizes = dict.fromkeys(("hidden_size", "embedding_size", "maxout_size", "min_count", "max_length"))
    nothing = {**given, "optimiser": None, "batch_size": None, "shortlist": None, "architecture": "bengio"}
    for options in (
        phrase_options("t", **given, **NO_SIZES),
        sentence_options("t", **given, **sizes),
        text_options("t", "m", **nothing),
    ):
        preset = NETWORKS[options["architecture"]].presets[chosen]
        found = choose(options)[1]
        assert found.training == preset.training
        assert preset.network.items() <= found.network.items()


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


def test_a_minibatch_is_of_pairs_or_of_words():
    of_words = {"architecture": "transformer", "heads": 4, "hidden_size": 8}
    for given, expected in (({}, "3,000 target words per minibatch"), ({"batch_size": 9}, "9 pairs per minibatch")):
        training = choose(sentence_options("t", **of_words, **given))[1].training
        assert training.minibatch("pairs") == expected
        assert expected in training.describe()
    with pytest.raises(ValueError, match="batch_words: does not go with --batch-size"):
        choose(sentence_options("t", batch_size=9, batch_words=9))
    with pytest.raises(ValueError, match="batch_words: --architecture encdec has no such option"):
        choose(phrase_options("t", batch_words=9))


def test_options_override_their_preset_and_nothing_else():
    preset = PRESETS["small"].training
    assert choose(phrase_options("t", max_epochs=None))[1].training == preset
    changed = phrase_options("t", max_epochs=None, optimiser="adadelta", dropout=0.0, batch_size=8, seed=5)
    expected = dataclasses.replace(for_optimiser(preset, "adadelta"), dropout=0.0, batch_size=8, seed=5)
    assert choose(changed)[1].training == expected
    learning = [
        choose(phrase_options("t", preset="paper", variant=name))[1].training for name in ("paper", "groundhog")
    ]
    assert [(one.reduction, one.clip_norm) for one in learning] == [("pair-mean", 0), ("sum", 1)]
    preset = choose(sentence_options("t", phases="groundhog", min_count=3, partition_words=9, reshuffle=True))[1]
    assert (preset.network["phases"], preset.min_count) == ("groundhog", 3)
    assert (preset.training.partition_words, preset.training.reshuffle) == (9, True)
    options = text_options("t", "m", architecture="rnnlm", hidden_size=60, bptt=1, min_count=5, dropout=0.5)
    preset = choose(options)[1]
    assert (preset.network, preset.learning, preset.min_count) == ({"hidden_size": 60}, {"bptt": 1}, 5)
    assert preset.training.dropout == 0.5


WATCH = Watch(lambda *_: None, never)


@pytest.fixture
def plan(tmp_path):
    """What the options of a phrase model come to, and what is to be learned."""
    (tmp_path / "t").write_bytes(b"a ||| b ||| 1\n")
    return lambda **options: plan_of(phrase_options(tmp_path / "t", **options), WATCH)


def test_networks_with_slots_have_no_longer_pairs_and_begin_otherwise(plan):
    assert plan(**OF_RANKER, corrupt="any", slots=3)[0].config == {
        "slots": 3, "embedding_size": 64, "hidden_size": 256, "corrupt": "any", "unit": "phrases",
    }  # fmt: skip
    lengths = [
        plan(**given)[1].config.max_length for given in (OF_CSTM, OF_CSTM | {"max_length": 2}, {"max_length": 0})
    ]
    assert lengths == [7, 2, 0]
    for given, kind, deviations in ((OF_CSTM, CSTM, (0.1, 0.01)), (OF_RANKER, RANKER, (0.1, 0.1))):
        plans = [plan(**given, slots=3, preset=preset) for preset in ("small", "paper")]
        assert [(each.kind, material.config.max_length) for each, material in plans] == [(kind, 3)] * 2
        assert tuple(each.training.initial_deviation for each, _ in plans) == deviations


OF_CELLS = "cell", "encoder_reset", "leaky_share", "forget_bias"  # which the paper's network has not
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
def test_a_switch_that_means_nothing_for_a_cell_is_none_and_the_papers_cell_has_none(plan, given, meant):
    planned = plan(**given)[0]
    if meant is None:
        assert not {*OF_CELLS} & {*planned.config}
        assert planned.kind is ENCDEC
    else:
        switches = {name: value for name, value in planned.config.items() if name in OF_CELLS}
        assert {name: value for name, value in switches.items() if value is not None} == {
            "cell": "gru",
            **given,
            **meant,
        }
        assert (planned.config["decoder_reset"] is None) == (switches["cell"] != "gru")
        assert planned.kind is ENCDEC_OF_CELLS


def test_switches_name_their_variant(plan):
    for given, variant in (
        ({"variant": "groundhog"}, "groundhog"),
        ({"decoder_reset": "before"}, "custom"),
        (
            {"variant": "groundhog", "summary": "tanh", "first_step": "zero-embedding", "decoder_reset": "after"},
            "paper",
        ),
    ):
        assert plan(**given)[0].config["variant"] == variant


REFUSED = [
    (phrase_options("t", encoder_reset="after", cell="tanh"), "encoder_reset: expected null, because tanh cells"),
    (phrase_options("t", decoder_reset="after", cell="lstm"), "decoder_reset: expected null, because lstm cells"),
    (phrase_options("t", leaky_share=0.0), "leaky_share: expected null, because gru cells"),
    (phrase_options("t", cell="lstn"), "cell: expected one of gru, .*, found 'lstn'"),
    (phrase_options("t", cell=[]), r"cell: expected one of gru, .*, found \[\]"),
    (phrase_options("t", variant="custom"), "variant: expected paper or groundhog, found 'custom'"),
    (phrase_options("t", summary=3), "summary: expected one of tanh, last, found 3"),
    (phrase_options("t", **OF_RANKER | {"slots": 3, "max_length": 4}), "max_length: expected at most 3, the number of slots"),
    (phrase_options("t", rho=0.5), "rho: needs optimiser adadelta, found adam"),
    (phrase_options("t", optimiser="sgd", beta_2=0.5), "beta_2: needs optimiser adam, found sgd"),
    (phrase_options("t", schedule="newbob", decay_on_plateau=0.5), "decay_on_plateau: needs schedule plateau, found newbob"),
    (text_options("t", "m", architecture="cslm", sort_batches=5), "sort_batches: has no effect on n-grams"),
    (sentence_options("t", reshuffle=True), "reshuffle: needs partition_words"),
    (sentence_options("t", architecture="transformer", shared=True), "shared: needs --subwords"),
    (phrase_options("t", freeze_embeddings=True), "freeze_embeddings: needs --source-embeddings"),
    (phrase_options("t", freeze_embeddings=True, source_embeddings="w", weight_decay=0.1), "freeze_embeddings: expected no weight_decay"),
    (phrase_options("t", **OF_CSTM, target_embeddings="w"), "target_embeddings: --architecture cstm has no embeddings"),
    (sentence_options("t", rare_window=3), "rare_window: needs --rare"),
    (sentence_options("t", rare="noalign", rare_window=3), "rare_window: has no effect with --rare noalign"),
    (sentence_options("t", rare="noalign", alignment="a"), "alignment: has no effect with --rare noalign"),
    (sentence_options("t", rare="copyable", alignment="a", dev="d"), "rare: copyable needs --dev-alignment"),
    (text_options("t", "m", architecture="bengio", hidden_size=0), "hidden_size: expected above 0 without direct connections, found 0"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=lambda value: value if isinstance(value, str) else "")
def test_what_does_not_go_together_is_refused(options, message):
    """Before anything is read: there is nothing."""
    with pytest.raises(ValueError, match=f"^{message}"):
        plan_of({**options, "device": "cpu"}, WATCH)
