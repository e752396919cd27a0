"""What makes a dictionary of each type from a text table."""

import pytest

from moses_rnn.moses.dictionaries import BINARY
from moses_rnn.table.phrase_table import Shape, parse_line
from moses_rnn.table.phrases import PhraseForm

COMPACT, PROBING, ON_DISK = "PhraseDictionaryCompact", "ProbingPT", "PhraseDictionaryOnDisk"
SCORES = "0.5 1 1 1 1"
COMMANDS = [
    (COMPACT, f"a b ||| c ||| {SCORES} ||| 0-0", "processPhraseTableMin -nscores 5 -rankscore 2 -in t.gz -out t.minphr"),
    (PROBING, f"a ||| b ||| {SCORES}", "CreateProbingPT --num-scores 5 --input-pt t.gz --output-dir t.probing"),
    (ON_DISK, f" ||| b ||| {SCORES}", "CreateOnDiskPt 1 1 5 1000000 2 t.gz t.ondisk"),
    (ON_DISK, "a|x b|y ||| c|z|w ||| 0.5 ||| 0-0", "CreateOnDiskPt 2 3 1 1000000 0 t.gz t.ondisk"),
    (COMPACT, "a ||| b ||| 0.5 1 1 ||| ||| 1 1 1", "processPhraseTableMin -nscores 3 -rankscore 1 -encoding None -in t.gz -out t.minphr"),
    (COMPACT, "a ||| b ||| 0.5", "processPhraseTableMin -nscores 1 -rankscore 0 -encoding None -in t.gz -out t.minphr"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "line", "command"), COMMANDS)
def test_what_makes_a_dictionary_of_a_table_with_such_a_line(kind, line, command):
    shape = Shape.of(parse_line(line.encode(), "t", 1, PhraseForm(0, 0)))
    binary = BINARY[kind]
    path, own = binary.path_for("t.gz"), min(shape.columns, 4)
    assert binary.command_for("t.gz", shape, path, own) == f"$MOSES_ROOT/bin/{command}"
    assert binary.program == command.split()[0]
    assert " 'a b' " in binary.command_for("a b", shape, "o", own)
