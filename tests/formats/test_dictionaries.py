import pytest

from moses_rnn.formats.dictionaries import BINARY, DICTIONARY_TYPES, LOADABLE, TEXT_TYPES, Shape, factor_list, listed
from moses_rnn.formats.phrase_forms import PhraseForm
from moses_rnn.formats.phrase_table import parse_line

SHAPES = [
    (b"a b ||| c ||| 0.5 1 ||| 0-0 1-0\n", None, Shape(2)),
    (b"a ||| b ||| 0.5\n", None, Shape(1, aligned=False)),
    (b"a ||| b ||| 0.5 ||| ||| 1 1 1\n", None, Shape(1, aligned=False)),
    (b" ||| b ||| 0.5 1 1 1 ||| 0-0\n", None, Shape(4)),
    (b"a|x b|y ||| c|z|w ||| 0.5 ||| 0-0\n", PhraseForm(0, 0), Shape(1, (2, 3))),
]


@pytest.mark.parametrize(("line", "form", "shape"), SHAPES)
def test_the_shape_of_a_table_is_that_of_its_first_line(line, form, shape):
    assert Shape.of(parse_line(line, "t", 1, *[form] if form else [])) == shape


COMMANDS = {
    "PhraseDictionaryCompact": (
        "processPhraseTableMin",
        "$MOSES_ROOT/bin/processPhraseTableMin -nscores 5 -rankscore 2 -in t.gz -out t.minphr",
    ),
    "ProbingPT": (
        "CreateProbingPT",
        "$MOSES_ROOT/bin/CreateProbingPT --num-scores 5 --input-pt t.gz --output-dir t.probing",
    ),
    "PhraseDictionaryOnDisk": ("CreateOnDiskPt", "$MOSES_ROOT/bin/CreateOnDiskPt 1 1 5 100 2 t.gz t.ondisk"),
}


@pytest.mark.parametrize("kind", COMMANDS)
def test_what_makes_a_binary_dictionary(kind):
    program, command = COMMANDS[kind]
    binary = BINARY[kind]
    assert binary.program == program
    assert binary.command_for("t.gz", Shape(5), binary.path_for("t.gz")) == command


def test_a_binariser_knows_of_factors_few_scores_and_missing_alignments():
    shape = Shape(1, (2, 1), aligned=False)
    on_disk, compact = (BINARY[kind].command_for("a b", shape, "o", 7) for kind in (
        "PhraseDictionaryOnDisk", "PhraseDictionaryCompact"
    ))  # fmt: skip
    assert on_disk == "$MOSES_ROOT/bin/CreateOnDiskPt 2 1 1 7 0 'a b' o"
    assert " -rankscore 0 -encoding None -in 'a b' -out o" in compact
    assert " -rankscore 1 " in BINARY["PhraseDictionaryCompact"].command_for("t", Shape(3, (1, 1), True), "o")


def test_every_type_that_can_be_loaded_is_a_type_of_dictionary():
    assert TEXT_TYPES < LOADABLE < DICTIONARY_TYPES
    assert BINARY.keys() == LOADABLE - TEXT_TYPES == COMMANDS.keys()


def test_lists_in_text():
    assert (factor_list(1), factor_list(3)) == ("0", "0,1,2")
    assert listed({"b", "a"}) == "a, b"
