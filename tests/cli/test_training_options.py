"""The options that the commands that train have in common."""

import dataclasses

import click
import pytest
from click.testing import CliRunner

from moses_rnn.cli.command import CONTEXT
from moses_rnn.cli.training_options import learning_options, preset_option, run_options, shown_presets
from moses_rnn.training.config import LearningRequest
from tests.commands import run

PRESETS = {"paper": "as published", "small": "for two cores"}


@click.command(context_settings=CONTEXT, epilog=shown_presets(PRESETS))
@preset_option(PRESETS)
@learning_options("N-grams", "texts", evaluated=" [default: an epoch]", patience=" [default: 10]")
@run_options
def learn(**options):
    click.echo(options)


def test_help_shows_the_presets_sizes():
    shown = run("train", "--help").stdout
    for preset in (
        "\n    paper  H 1000, E 100, M 500, R 100, 15,000 words; adadelta, 64 a\n        minibatch, at most 72 hours\n",
        "\n    small  H 256, E 64, M 128, R 64, 5,000 words; adam, 128 a minibatch, at\n        most 0.5 hours\n",
    ):
        assert preset in shown


def test_every_choice_of_learning_has_an_option():
    """But the shortlist, of which the commands say different things."""
    fields = {field.name for field in dataclasses.fields(LearningRequest)}
    assert {parameter.name for parameter in learn.params} == fields - {"shortlist"}


def test_help_shows_them_in_their_order_and_in_the_units_of_the_command():
    text = CliRunner().invoke(learn, ["--help"]).output
    places = [text.index(f"--{parameter.name.replace('_', '-')} ") for parameter in learn.params]
    assert places == sorted(places)
    words = " ".join(text.split())
    assert "--batch-size INTEGER RANGE N-grams a minibatch" in words
    assert "Passes over the texts; 0 for no limit" in words
    assert "N-grams between two evaluations [default: an epoch]" in words
    assert "Evaluations without gain before stopping [default: 10]" in words
    assert "\n    paper  as published\n    small  for two cores\n" in text


def test_what_is_not_given_is_left_to_the_preset():
    given = {"precision": "auto", "seed": 1, "device": "auto", "restart": False, "quiet": False}
    nothing = dict.fromkeys(parameter.name for parameter in learn.params)
    assert CliRunner().invoke(learn, []).output == f"{nothing | given}\n"


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("preset", "huge"),
        ("optimiser", "momentum"),
        ("learning-rate", "0"),
        ("learning-rate", "inf"),
        ("batch-size", "0"),
        ("warm-up", "-1"),
        ("cool-down", "1.1"),
        ("averaging", "-0.1"),
        ("weight-decay", "nan"),
        ("dropout", "1"),
        ("clip-norm", "-1"),
        ("precision", "fp16"),
        ("max-minutes", "-1"),
        ("max-epochs", "nan"),
        ("evaluate-every", "0"),
        ("patience", "0"),
        ("seed", "-1"),
        ("seed", str(2**63)),
        ("threads", "0"),
    ],
)
def test_what_no_training_can_use_is_refused(option, value):
    done = CliRunner().invoke(learn, [f"--{option}", value])
    assert done.exit_code == 2
    assert f"Invalid value for '--{option}': " in done.output


@pytest.mark.parametrize(
    ("option", "value"),
    [("learning-rate", "1e-30"), ("cool-down", "1"), ("averaging", "0"), ("dropout", "0.99"), ("seed", str(2**63 - 1))],
)
def test_limits_that_can_be_used_are_accepted(option, value):
    done = CliRunner().invoke(learn, [f"--{option}", value])
    assert done.exit_code == 0, done.output
