"""What is taken for a phrase pair, and how a factored one is read."""

import pytest

from moses_rnn.analysis.lookup import parse_pair
from moses_rnn.errors import InputError
from moses_rnn.formats.phrase_forms import PhraseForm

# what was given as a pair, form; what is wrong
NOT_PAIRS = [
    (b"a b", PhraseForm(), "expected a pair as 'source ||| target', found 'a b'"),
    (b"a ||| ", PhraseForm(), "expected a pair as 'source ||| target', found 'a ||| '"),
    (b"||| a", PhraseForm(), "expected a pair as 'source ||| target', found '||| a'"),
    (b"a ||| b\nc ||| d", PhraseForm(), "expected a pair as 'source ||| target', found 'a ||| b\\nc ||| d'"),
    (b"a [X] ||| b [X]", PhraseForm(), "the pair:1: expected words without brackets, found 'a [X]'"),
    (b"a|A ||| b", PhraseForm(2, None), "the pair:1: expected source words with a factor 2 (counted from 0), found 2 in 'a|A'"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "form", "message"), NOT_PAIRS)
def test_what_is_no_pair_is_refused(text, form, message):
    with pytest.raises(InputError) as caught:
        parse_pair(text, form)
    assert str(caught.value).startswith(message)


def test_a_factored_pair_is_read_by_its_factors():
    assert parse_pair(b"a|A b|B ||| u|U", PhraseForm(1, 0)).read == (b"A B", b"u")
