"""What a training says: of its network, as it proceeds, at its end."""

from types import SimpleNamespace

import pytest
from torch import nn

from moses_rnn.cli.training_display import TrainingDisplay, evaluation_header, evaluation_line, say_end
from moses_rnn.errors import Stopped
from moses_rnn.models.learning_curves import NATS, RANKED_WRONG
from moses_rnn.training.config import TrainingConfig
from moses_rnn.training.state import Progress

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


def test_an_evaluation_is_a_line_of_80_columns():
    trainer = evaluated()
    header, line = evaluation_header(trainer), evaluation_line(trainer, is_best=True)
    assert [header, line] == [
        "     pairs  epochs      time  held-out nats  perplexity  clipped  tokens/s",
        " 9,999,999   12.08   9:59:59         1.2346       3.437     100%   123,457  best",
    ]
    assert len(line) <= 80
    assert len(header) == len(evaluation_line(trainer, is_best=False))


def test_a_ranker_is_shown_with_its_own_figures():
    class Ranking(Task):
        measure = RANKED_WRONG

    trainer = evaluated(ranked_wrong=0.0375, hinge_per_pair=0.125)
    trainer.task = Ranking
    assert [evaluation_header(trainer), evaluation_line(trainer, is_best=True)] == [
        "     pairs  epochs      time   ranked wrong        loss  clipped   pairs/s",
        " 9,999,999   12.08   9:59:59         0.0375       0.125     100%   123,457  best",
    ]


def test_how_far_from_normalised_is_said_where_it_is_known():
    trainer = evaluated(mean_abs_log_z=0.125)
    assert evaluation_header(trainer).endswith("  |log Z|  tokens/s")
    assert evaluation_line(trainer, is_best=False).endswith("     0.12   123,457")


def test_a_cost_without_bounds_is_printed_too():
    assert "  1.014e+304  " in evaluation_line(evaluated(nats_per_token=800.0), is_best=False)


def test_the_header_stands_once_and_skipped_steps_below(capsys):
    display = TrainingDisplay()
    display.evaluated(evaluated(), is_best=True)
    display.evaluated(evaluated(skipped=3), is_best=False)
    header, _, _, skipped = capsys.readouterr().err.splitlines()
    assert header == evaluation_header(evaluated())
    assert skipped == "3 steps skipped so far: their gradients were not finite"


def trainer_with(progress, *, resumed=False, share=0.0, processes=1):
    return SimpleNamespace(
        task=Task,
        model=nn.Linear(40, 30),
        config=TrainingConfig(),
        progress=progress,
        ranks=SimpleNamespace(size=processes),
        resumed=resumed,
        share_over=lambda: share,
    )


class Recorder:
    """In place of the bar."""

    def __init__(self):
        self.shown = []

    def show(self, *arguments):
        self.shown.append(arguments)


def test_a_start_says_how_large_the_network_is_and_how_it_learns(capsys):
    TrainingDisplay().starting(trainer_with(Progress()))
    network, training = capsys.readouterr().err.splitlines()
    assert network == "network: paper variant, H 8, 1,230 parameters"
    assert training == f"training: {TrainingConfig().describe()}"


def test_several_processes_are_counted(capsys):
    TrainingDisplay().starting(trainer_with(Progress(), processes=3))
    assert capsys.readouterr().err.splitlines()[2:] == ["processes: 3, which share each minibatch"]


@pytest.mark.parametrize(
    ("progress", "line"),
    [
        (Progress(examples=1234), "resuming after 1,234 pairs, no evaluation yet"),
        (Progress(examples=1234, best=3.25, history=[FIGURES]), "resuming after 1,234 pairs, best so far 3.2500"),
    ],
)
def test_a_resumed_run_says_where_it_stands(capsys, progress, line):
    TrainingDisplay().starting(trainer_with(progress, resumed=True))
    assert capsys.readouterr().err.splitlines()[-1] == line


def test_the_bar_is_of_what_is_left_to_this_run():
    display, bar = TrainingDisplay(quiet=True), Recorder()
    display.starting(trainer_with(Progress(examples=100), share=0.5))
    display._display = bar
    display.stepped(trainer_with(Progress(examples=150, epoch=2), share=0.75), 4.0)
    display.stepped(trainer_with(Progress(examples=200, epoch=2), share=1.0), 5.0)
    assert bar.shown == [
        (50, 0.5, "150 in all, epoch 3, 4.000 nats/token"),
        (100, 1.0, "200 in all, epoch 3, 4.020 nats/token"),  # the mean follows slowly
    ]


def test_without_a_limit_no_share_is_known():
    display, bar = TrainingDisplay(quiet=True), Recorder()
    display.starting(trainer_with(Progress()))
    display._display = bar
    display.stepped(trainer_with(Progress(examples=64)), 4.0)
    assert bar.shown == [(64, None, "epoch 1, 4.000 nats/token")]


def test_an_evaluation_and_the_corpus_are_lines(capsys):
    trainer = trainer_with(Progress(history=[FIGURES]))
    for quiet in (False, True):
        display = TrainingDisplay(quiet=quiet)
        display.corpus_read(["table: 3 lines", "left out: none"])
        display.evaluated(trainer, True)
        display.close()
        figures = [evaluation_header(trainer), evaluation_line(trainer, True)]
        expected = ["table: 3 lines", "left out: none", *figures]
        assert capsys.readouterr().err.splitlines() == ([] if quiet else expected)


def outcome(finished, **changes):
    return SimpleNamespace(progress=Progress(finished=finished, **changes), verdict="converged: it did", measure=NATS)


@pytest.mark.parametrize(("unit", "per"), [("pairs", "nats per target token"), ("n-grams", "nats per token")])
def test_an_end_is_said_with_its_verdict(capsys, tmp_path, unit, per):
    say_end(outcome("2 epochs are done", best=3.25), tmp_path, unit, quiet=False)
    assert capsys.readouterr().err == (
        f"finished: 2 epochs are done; best held-out 3.2500 {per}; model in {tmp_path}\nverdict: converged: it did\n"
    )


def test_a_warning_is_said_even_quietly(capsys, tmp_path):
    say_end(outcome("2 epochs are done"), tmp_path, "pairs", quiet=True, warning="learned nothing")
    assert capsys.readouterr().err == "warning: learned nothing\n"


def test_a_stop_says_how_to_go_on(capsys, tmp_path):
    with pytest.raises(Stopped, match="^stopped after 1,234 pairs; run the same command again to continue$"):
        say_end(outcome("", examples=1234), tmp_path, "pairs", quiet=False, warning="learned nothing")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("finished", "code"), [("2 epochs are done", 0), ("", 75)])
def test_processes_that_do_not_lead_end_without_a_word(tmp_path, capsys, finished, code):
    with pytest.raises(SystemExit) as end:
        say_end(outcome(finished), tmp_path, "pairs", quiet=False, leads=False, warning="learned nothing")
    assert (end.value.code, capsys.readouterr()) == (code, ("", ""))
