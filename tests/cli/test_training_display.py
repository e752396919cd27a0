"""What a training says: of its network, as it proceeds, at its end."""

from types import SimpleNamespace

from moses_rnn.cli.training import TrainingDisplay, evaluation_header, evaluation_line
from moses_rnn.networks.learning_curves import NATS, RANKED_WRONG

FIGURES = {
    "pairs": 9_999_999,
    "epochs": 12.0772,
    "seconds": 35_999,
    "nats_per_token": 1.23456,
    "clipped_share": 0.996,
    "tokens_per_second": 123_456.7,
}


class Task:
    unit = "pairs"
    measure = NATS

    @staticmethod
    def describe():
        return "paper variant, H 8"


def evaluated(skipped=0, **changes):
    history = [{**FIGURES, **changes}]
    return SimpleNamespace(task=Task, progress=SimpleNamespace(history=history, skipped_steps=skipped))


def test_a_ranker_is_shown_with_its_own_figures():
    class Ranking(Task):
        measure = RANKED_WRONG

    trainer = evaluated(ranked_wrong=0.0375, hinge_per_pair=0.125)
    trainer.task = Ranking
    assert [evaluation_header(trainer), evaluation_line(trainer, is_best=True)] == [
        "     pairs  epochs      time   ranked wrong        loss  clipped   pairs/s",
        " 9,999,999   12.08   9:59:59         0.0375       0.125     100%   123,457  best",
    ]


def test_a_cost_without_bounds_is_printed_too():
    assert "  1.014e+304  " in evaluation_line(evaluated(nats_per_token=800.0), is_best=False)


def test_the_header_stands_once_and_skipped_steps_below(capsys):
    display = TrainingDisplay()
    display.evaluated(evaluated(), is_best=True)
    display.evaluated(evaluated(skipped=3), is_best=False)
    header, _, _, skipped = capsys.readouterr().err.splitlines()
    assert header == evaluation_header(evaluated())
    assert skipped == "3 steps skipped so far: their gradients were not finite"
