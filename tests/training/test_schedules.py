"""Schedules against values computed by hand."""

import pytest

from moses_rnn.training.schedules import ENDS, SCHEDULES, Course, Evaluation


def course(examples=0, epochs=0.0, judged=(), decay=0.5):
    return Course(examples, epochs, [Evaluation(*evaluation) for evaluation in judged], decay)


def after_epochs(*nats):
    return course(epochs=len(nats), judged=enumerate(nats, 1))


@pytest.mark.parametrize("name", SCHEDULES)
def test_each_begins_with_the_whole_rate(name):
    assert SCHEDULES[name](course()) == 1.0


@pytest.mark.parametrize(
    ("nats", "factor"),
    [([3.0], 1), ([3.0, 2.0], 1), ([3.0, 3.0], 0.4), ([3.0, 2.0, 2.5, 2.2], 0.16), ([3.0, 4.0, 2.0], 0.4)],
)
def test_plateau_counts_what_is_no_better_than_the_best(nats, factor):
    assert SCHEDULES["plateau"](after_epochs(*nats)._replace(decay=0.4)) == pytest.approx(factor)


@pytest.mark.parametrize(
    ("epochs", "factor"),
    [(4.999, 1), (5, 1 / 2), (5.49, 1 / 2), (5.5, 1 / 4), (6, 1 / 8), (6.5, 1 / 16), (7, 1 / 32), (7.49, 1 / 32)],
)
def test_half_epochs_halve_from_the_fifth_on(epochs, factor):
    assert SCHEDULES["half-epochs"](course(epochs=epochs)) == factor


@pytest.mark.parametrize(("examples", "factor"), [(0, 1), (100_000_000, 1 / 2), (300_000_000, 1 / 4)])
def test_inverse_time_falls_with_the_examples(examples, factor):
    assert SCHEDULES["inverse-time"](course(examples)) == pytest.approx(factor)


@pytest.mark.parametrize(("warm_ups", "factor"), [(0.01, 1), (1, 1), (4, 1 / 2), (100, 1 / 10)])
def test_inverse_root_falls_with_the_steps_after_the_warm_up(warm_ups, factor):
    assert SCHEDULES["inverse-root"](course()._replace(warm_ups=warm_ups)) == pytest.approx(factor)


@pytest.mark.parametrize(
    ("nats", "factor", "ends"),
    [
        ([100], 1, False),
        ([100, 99], 1, False),  # 1 % lower
        ([100, 99.7], 1, False),  # 0.3 % lower
        ([100, 99.8], 1 / 2, False),
        ([100, 99.8, 98], 1 / 4, False),  # halved after every epoch, once it has begun
        ([100, 99.8, 98, 96, 95.9], 1 / 16, True),
        ([100, 101, 101], 1 / 4, True),
    ],
)
def test_newbob_halves_from_a_poor_epoch_on_and_ends_with_the_second(nats, factor, ends):
    assert SCHEDULES["newbob"](after_epochs(*nats)) == factor
    assert bool(ENDS["newbob"](after_epochs(*nats))) == ends


def test_newbob_looks_at_the_first_evaluation_after_each_epoch():
    judged = [(0.4, 300), (0.8, 1), (1.2, 100), (1.6, 100), (2.0, 99), (2.4, 500), (3.2, 99)]
    assert SCHEDULES["newbob"](course(judged=judged)) == 1 / 2
    assert SCHEDULES["newbob"](course(judged=judged[:-1])) == 1
