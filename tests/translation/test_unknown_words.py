"""By which rule a source word takes the place of an unknown one, and which source word that is."""

import pytest

from moses_rnn.moses.lexicon import Lexicon
from moses_rnn.translation.options import RULES
from moses_rnn.translation.translate import by_attention, word_for

LEXICON = Lexicon(
    {b"cat": [(b"chat", 0.5), (b"minou", 0.5)], b"Paris": [(b"Lutece", 1.0)], "été".encode(): [(b"summer", 1.0)]}
)
# source word → what each rule writes: the page's table
RULE_TABLE = {
    b"cat": {"copy": b"cat", "dictionary": b"chat", "lowercase": b"chat"},
    b"dog": {"copy": b"dog", "dictionary": b"dog", "lowercase": b"dog"},
    b"Paris": {"copy": b"Paris", "dictionary": b"Lutece", "lowercase": b"Paris"},
    b"1984": {"copy": b"1984", "dictionary": b"1984", "lowercase": b"1984"},
    "été".encode(): {"copy": "été".encode(), "dictionary": b"summer", "lowercase": b"summer"},
    b"\xff": {"copy": b"\xff", "dictionary": b"\xff", "lowercase": b"\xff"},
}


@pytest.mark.parametrize("word", RULE_TABLE)
def test_each_rule_writes_what_the_table_says(word):
    for rule, expected in RULE_TABLE[word].items():
        assert word_for(rule, LEXICON)(word) == expected
    assert set(RULES) == {"no", "never", *RULE_TABLE[word]}


SOURCE = [b"the", b"cat", b"Paris"]


@pytest.mark.parametrize("rule", ["copy", "dictionary"])
def test_an_unknown_word_is_replaced_by_its_place(rule):
    chosen = word_for(rule, LEXICON)
    restored = by_attention(chosen)(SOURCE, [b"le", b"<unk>", b"<unk>", b"<unk>"], [0, 1, 2, 0])
    assert restored.words == [b"le", chosen(b"cat"), chosen(b"Paris"), b"the"]
    assert (restored.replaced, restored.kept) == (3, [0, 1, 2, 3])


def test_without_a_place_it_stays():
    written = [b"le", b"<unk>"]
    for places in (None, [0, None]):
        restored = by_attention(bytes.upper)(SOURCE, written, places)
        assert (restored.words, restored.replaced) == (written, 0)


def test_a_translation_that_is_unknown_itself_restores_nothing():
    """A lexicon of annotated texts has <unk> among its words."""
    chosen = word_for("dictionary", Lexicon({b"cat": [(b"<unk>", 1.0)]}))
    restored = by_attention(chosen)(SOURCE, [b"<unk>", b"<unk>"], [1, 2])
    assert (restored.words, restored.replaced) == ([b"<unk>", b"Paris"], 1)
