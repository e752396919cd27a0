"""The kinds of dictionaries that are compared."""

from moses_rnn.formats.dictionaries import LOADABLE
from moses_rnn.moses.kinds import KINDS, OF_RULES


def test_every_kind_is_a_type_that_a_text_table_can_become():
    assert {type_name for type_name, _ in KINDS.values()} <= LOADABLE
    assert {decoder for _, decoder in KINDS.values()} == {"moses", "moses2"}


def test_rules_can_be_some_of_them():
    assert set(OF_RULES) < KINDS.keys()
