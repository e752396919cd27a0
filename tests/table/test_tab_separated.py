import pytest

from moses_rnn.errors import FormatError
from moses_rnn.table.tab_separated import as_table_blocks
from moses_rnn.table.table_blocks import parse_blocks


def test_blocks_become_those_of_a_table_line_for_line():
    blocks = [b"a b\tc\nd\te f\textra\n", b"g\rh\ti\nlast\tone"]
    made = list(parse_blocks(as_table_blocks(blocks, "x"), "x"))
    pairs = [block.pairs() for block in made]
    assert [pair for of_block in pairs for pair in zip(of_block.sources, of_block.targets, strict=True)] == [
        (b"a b", b"c"),
        (b"d", b"e f"),
        (b"g\rh", b"i"),
        (b"last", b"one"),
    ]
    with pytest.raises(FormatError, match="x:3: expected source and target"):
        list(as_table_blocks([b"a\tb\nc\td\n", b"e\n"], "x"))
    with pytest.raises(FormatError, match=r"x:1: expected a target without \|\|\|, found 'le\|\|\|1'"):
        list(as_table_blocks([b"the\tle|||1\n"], "x"))
