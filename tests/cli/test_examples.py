"""Examples below a command's help: as wide as the terminal, and still the same commands."""

import re
import shlex

import pytest

from moses_rnn.cli.examples import fitted
from tests.cli.every_command import COMMANDS


def commands_in(text):
    """The words of each line that calls a program, its continuations joined."""
    joined = re.sub(r" *\\\n +", " ", text)
    return [
        shlex.split(line, comments=True)
        for line in joined.splitlines()
        if re.match(r"  +\S*(moses|torchrun|zcat)\S* ", line)
    ]


@pytest.mark.parametrize("width", [60, 76, 98])
@pytest.mark.parametrize("name", COMMANDS)
def test_examples_are_the_same_at_any_width(name, width):
    epilog = COMMANDS[name].epilog
    text = fitted(epilog, width)
    raw = [paragraph for paragraph in re.split(r"\n\s*\n", text) if paragraph.startswith("\b")]
    assert all(len(line) <= width or " " not in line.strip() for paragraph in raw for line in paragraph.splitlines())
    assert commands_in(text) == commands_in(epilog)


def test_prose_is_filled_and_rows_hang():
    text = "\b\nExample: one\nand two three:\n  moses-rnn-x a --b 'c d' > e\n  row of a table\n\nfilled by click"
    assert fitted(text, 18).splitlines() == [
        "\b",
        "Example: one and",
        "two three:",
        "  moses-rnn-x a \\",
        "      --b 'c d' \\",
        "      > e",
        "  row of a table",
        "",
        "filled by click",
    ]
    assert fitted("\b\n  some row of a table", 14).splitlines() == ["\b", "  some row of", "      a table"]
