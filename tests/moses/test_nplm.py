"""The text format of NPLM: sections, sizes and words as nplm's own reader wants them."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_rnn.errors import InputError
from moses_rnn.moses.nplm import NplmNetwork

ORDER, V, E, H_1, H_2 = 3, 6, 2, 4, 3
WORDS = [b"<unk>", b"</s>", b"le", "10\u00a0km".encode(), b"<s>", b"<null>"]


def counted(*shape):
    return np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)


NETWORK = NplmNetwork(
    order=ORDER,
    words=WORDS,
    input_embeddings=counted(V, E),
    hidden_weights=(counted(H_1, (ORDER - 1) * E), counted(H_2, H_1)),
    hidden_biases=(counted(H_1), counted(H_2)),
    output_weights=counted(V, H_2),
    output_biases=-counted(V) / 8,
)
VOCABULARY = "<unk>\n</s>\nle\n10\u00a0km\n<s>\n<null>"
FILE = f"""\\config
version 1
ngram_size 3
input_vocab_size 6
output_vocab_size 6
input_embedding_dimension 2
num_hidden 4
output_embedding_dimension 3
activation_function rectifier

\\input_vocab
{VOCABULARY}

\\output_vocab
{VOCABULARY}

\\input_embeddings
1	2\n3	4\n5	6\n7	8\n9	10\n11	12

\\hidden_weights 1
1	2	3	4\n5	6	7	8\n9	10	11	12\n13	14	15	16

\\hidden_biases 1
1\n2\n3\n4

\\hidden_weights 2
1	2	3	4\n5	6	7	8\n9	10	11	12

\\hidden_biases 2
1\n2\n3

\\output_weights
1	2	3\n4	5	6\n7	8	9\n10	11	12\n13	14	15\n16	17	18

\\output_biases
-0.125\n-0.25\n-0.375\n-0.5\n-0.625\n-0.75

\\end
"""


def test_the_file_as_it_is_written():
    assert b"".join(NETWORK.lines()).decode() == FILE


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=V, max_size=V))
def test_values_are_read_back_as_the_same_float32(values):
    biases = np.array(values, np.float32)
    lines = list(dataclasses.replace(NETWORK, output_biases=biases).lines())
    written = lines[lines.index(b"\\output_biases\n") + 1 : -2]
    assert np.array([np.float32(line) for line in written]).tobytes() == biases.tobytes()


READ_BACK = [
    "a\u00a0b\u3000c\u2028d\u0085e".encode(),  # NPLM parts words at blanks and tabs only
    b"caf\xe9",  # no UTF-8
    b"a\rb",
    b"\\output_vocab",
]


@pytest.mark.parametrize("word", READ_BACK, ids=repr)
def test_odd_words_are_written_as_they_are(word):
    words = [word if other == b"le" else other for other in WORDS]
    data = b"".join(dataclasses.replace(NETWORK, words=words).lines())
    assert data == FILE.encode().replace(b"\nle\n", b"\n" + word + b"\n")


REFUSED = {
    "empty": (b"", "''"),
    "blank": (b"a b", "'a b'"),
    "tab": (b"a\tb", r"'a\\tb'"),
    "line end": (b"a\nb", r"'a\\nb'"),
    "twice": (b"</s>", "'</s>'"),
}


@pytest.mark.parametrize(("word", "found"), REFUSED.values(), ids=REFUSED)
def test_words_that_nplm_would_not_read_back_are_refused_before_anything_is_written(word, found):
    words = [word if other == b"10\xc2\xa0km" else other for other in WORDS]
    lines = dataclasses.replace(NETWORK, words=words).lines()
    with pytest.raises(
        InputError, match=f"expected words without blanks, each once, as NPLM reads them, found {found}$"
    ):
        next(lines)
