"""Options of commands as a plan of trials may give them."""

import pytest

from moses_rnn.cli.plan_options import NOT_TO_SCORE, NOT_TO_TRAIN, plan_options
from moses_rnn.cli.score import main as score
from moses_rnn.cli.train import main as train
from moses_rnn.formats.plan_values import Unexpected


@pytest.mark.parametrize(
    ("command", "name", "value", "words"),
    [
        ("train", "hidden-size", 512, ("--hidden-size=512",)),
        ("train", "dropout", 0.5, ("--dropout=0.5",)),
        ("train", "variant", "groundhog", ("--variant=groundhog",)),
        ("train", "compile", True, ("--compile",)),
        ("train", "compile", False, ("--no-compile",)),
        ("score", "word-penalty", True, ("--word-penalty",)),
        ("score", "word-penalty", False, ()),
        ("score", "floor", -50.5, ("--floor=-50.5",)),
    ],
)
def test_words_of_a_command_line(command, name, value, words):
    assert plan_options()[command].words(name, value) == words


@pytest.mark.parametrize(
    ("command", "name", "value"),
    [("train", "seed", 1), ("train", "nothing", 1), ("score", "model", "m"), ("train", "hidden-size", "a"),
     ("train", "hidden-size", True), ("train", "variant", "other"), ("train", "source-corpus", "a;b"),
     ("train", "dropout", [0.5]), ("score", "word-penalty", 1), ("train", "dropout", float("nan"))],
)  # fmt: skip
def test_what_a_trial_may_not_have(command, name, value):
    with pytest.raises(Unexpected):
        plan_options()[command].words(name, value)


def test_what_is_left_out_are_options():
    for command, left_out in ((train, NOT_TO_TRAIN), (score, NOT_TO_SCORE)):
        names = {option.removeprefix("--") for param in command.params for option in param.opts}
        assert left_out <= names | {"help"}
