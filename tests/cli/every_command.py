"""Every command and subcommand, by what is typed."""

import importlib

from moses_rnn.cli.main import COMMANDS as NAMES
from moses_rnn.cli.main import main


def _commands():
    yield "moses-rnn", main
    for name in NAMES:
        program = importlib.import_module(f"moses_rnn.cli.{name}").main
        yield f"moses-rnn {name}", program
        for sub, command in getattr(program, "commands", {}).items():
            yield f"moses-rnn {name} {sub}", command


COMMANDS = dict(_commands())
