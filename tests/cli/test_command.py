"""What all commands share: the record of a command's options."""

from dataclasses import dataclass, fields
from importlib.metadata import entry_points

import click
import pytest
from click.testing import CliRunner

from moses_rnn.cli.command import takes


@dataclass(frozen=True)
class Greeting:
    name: str
    max_words: int


@click.command()
@click.argument("name")
@click.option("--max-words", type=int, default=3)
@takes(Greeting)
def greet(request: Greeting) -> None:
    """Greet."""
    click.echo(request)


@click.command()
@click.argument("name")
@click.option("--maximal-words", type=int)
@takes(Greeting)
def misspelt(request: Greeting) -> None:
    """Greet."""


def test_options_become_the_fields_of_their_names():
    assert CliRunner().invoke(greet, ["you", "--max-words", "5"]).output == "Greeting(name='you', max_words=5)\n"
    assert greet.help == "Greet."


def test_an_option_without_a_field_does_not_vanish():
    done = CliRunner().invoke(misspelt, ["you"])
    assert isinstance(done.exception, TypeError)
    assert "unexpected keyword argument 'maximal_words'" in str(done.exception)


def commands():
    """Every command that takes a request."""
    for script in entry_points(group="console_scripts"):
        if not script.value.startswith("moses_rnn.cli."):
            continue
        main = script.load()
        for command in (main, *getattr(main, "commands", {}).values()):
            if hasattr(command.callback, "request"):
                yield pytest.param(command, id=f"{script.name} {command.name}")


@pytest.mark.parametrize("command", list(commands()))
def test_each_option_has_a_field_and_each_field_an_option(command):
    options = {parameter.name for parameter in command.params if parameter.expose_value}
    assert options == {field.name for field in fields(command.callback.request)}
