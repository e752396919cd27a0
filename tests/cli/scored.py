"""What the tests of moses-rnn-score share: reading its tables, starting it on a table that takes a while."""

import gzip
import subprocess
import sys
import time
from pathlib import Path

from moses_rnn.table.phrase_table import parse_table
from moses_rnn.table.phrases import words
from tests.commands import saved_lines

INI = """[feature]
PhraseDictionaryMemory name=TranslationModel0 num-features=4 path={table} input-factor=0 output-factor=0
Distortion
[weight]
TranslationModel0= 0.2 0.2 0.2 0.2
Distortion0= 0.3
"""


def lines_of(path):
    with gzip.open(path) as lines:
        return list(lines)


def without_last_scores(lines, count=1):
    """Lines without the last numbers of their third field."""
    for parsed in parse_table(lines, "scored"):
        added = sum(len(score) + 1 for score in words(parsed.scores)[-count:])
        end = parsed.spans.scores_end
        yield parsed.line[: end - added] + parsed.line[end:]


def added_values(lines, count=1):
    return [[float(s) for s in words(parsed.scores)[-count:]] for parsed in parse_table(lines, "scored")]


OUTPUTS = {"long.rnn.gz", "long.rnn.gz.json", "moses.rnn.ini"}


LONG = ["long", "--model", "phrase-table.rnn-model", "--moses-ini", "moses.ini"]


def start_and_wait(folder, *options):
    """Score the long table until something is saved."""
    command = Path(sys.executable).with_name("moses-rnn-score")
    process = subprocess.Popen(
        [command, *LONG, *options], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    while process.poll() is None and not saved_lines(folder / "long.rnn.gz"):
        time.sleep(0.002)
    return process


def names(folder):
    return {path.name for path in folder.iterdir()}
