"""What a training says as it proceeds, beside what the golden commands show."""

from types import SimpleNamespace

from moses_rnn.cli.training import TrainingDisplay, evaluation_header, evaluation_line
from moses_rnn.networks.learning_curves import NATS

FIGURES = {
    "pairs": 9_999_999,
    "epochs": 12.0772,
    "seconds": 35_999,
    "nats_per_token": 800.0,
    "clipped_share": 0.996,
    "tokens_per_second": 123_456.7,
}


def evaluated(skipped=0):
    task = SimpleNamespace(unit="pairs", measure=NATS)
    return SimpleNamespace(task=task, progress=SimpleNamespace(history=[FIGURES], skipped_steps=skipped))


def test_a_cost_without_bounds_is_printed_too():
    line = " 9,999,999   12.08   9:59:59       800.0000  1.014e+304     100%   123,457  best"
    assert evaluation_line(evaluated(), is_best=True) == line


def test_the_header_stands_once_and_skipped_steps_below(capsys):
    display = TrainingDisplay()
    display.evaluated(evaluated(), is_best=True)
    display.evaluated(evaluated(skipped=3), is_best=False)
    header, _, _, skipped = capsys.readouterr().err.splitlines()
    assert header == evaluation_header(evaluated())
    assert skipped == "3 steps skipped so far: their gradients were not finite"
