"""The presets, and what a request overrides."""

import dataclasses

import pytest

from moses_rnn.errors import MosesRnnError
from moses_rnn.training.config import PRESETS, TrainingConfig, for_optimiser
from tests.training.small import phrase_request


def test_the_papers_preset_is_the_papers():
    paper = PRESETS["paper"]
    assert (paper.hidden_size, paper.embedding_size, paper.maxout_size, paper.output_rank) == (1000, 100, 500, 100)
    assert paper.shortlist == 15_000
    training = paper.training
    assert (training.optimiser, training.rho, training.epsilon, training.batch_size) == ("adadelta", 0.95, 1e-6, 64)


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
    assert dataclasses.replace(TrainingConfig(), batch_tokens=1).course() != course


def test_a_request_overrides_its_preset_and_nothing_else():
    preset = PRESETS["small"].training
    assert phrase_request("t", max_epochs=None).learning(preset) == preset
    changed = phrase_request("t", max_epochs=None, optimiser="adadelta", dropout=0.0, batch_size=8, seed=5)
    expected = dataclasses.replace(for_optimiser(preset, "adadelta"), dropout=0.0, batch_size=8, seed=5)
    assert changed.learning(preset) == expected


def test_weights_do_not_decay_under_adadelta():
    """Which would leave the option out without a word."""
    preset = PRESETS["paper"].training
    assert phrase_request("t", weight_decay=0.1, optimiser="adam").learning(preset).weight_decay == 0.1
    assert phrase_request("t", weight_decay=0.0).learning(preset).weight_decay == 0.0
    with pytest.raises(MosesRnnError, match="--weight-decay 0.1: expected --optimiser adam or sgd, found adadelta"):
        phrase_request("t", weight_decay=0.1).learning(preset)


def test_what_is_not_zero_is_described():
    plain = TrainingConfig().describe()
    assert plain == (
        "adadelta, learning rate 1, 64 pairs a minibatch, pair-mean gradient clipped at 1, fp32, seed 1; "
        "evaluated every 500,000 pairs; ends after 4320 minutes or 20 evaluations without gain"
    )
    everything = TrainingConfig(warm_up=1000, cool_down=0.5, averaging=0.1, dropout=0.2, weight_decay=0.3, max_epochs=2)
    assert (
        TrainingConfig(schedule="newbob").describe().startswith("adadelta, learning rate 1, schedule newbob, 64 pairs")
    )
    assert "64 pairs a minibatch in 4 parts, " in TrainingConfig(accumulate=4).describe()
    assert everything.describe("n-grams").startswith(
        "adadelta, learning rate 1, risen over 1,000 minibatches, falling in the last 50%, "
        "weights averaged over about the last 10% of the steps, dropout 0.2, weight decay 0.3, 64 n-grams a minibatch, "
    )
    assert everything.describe().endswith("ends after 2 epochs or 4320 minutes or 20 evaluations without gain")
