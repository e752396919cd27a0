"""From texts to the folder of a language model."""

import pytest

from moses_rnn.errors import InputError
from moses_rnn.producers.open import open_model
from moses_rnn.training.lm_run import train_language_model
from tests.training.texts import Listener, never, sentences, text_request

CSLM_SIZES = {"order": 3, "embedding_size": 4, "first_size": 6, "second_size": 5}


def request(folder, lines, **changes):
    """To train on these lines, in `folder`/model."""
    folder.joinpath("a.fr").write_bytes(b"".join(line + b"\n" for line in lines))
    return text_request(folder / "a.fr", folder / "model", **{"network": "cslm", **CSLM_SIZES, **changes})


def test_what_no_decoder_writes_is_no_word(tmp_path):
    train_language_model(request(tmp_path, [*sentences(100), b"<s> <null> rare"]), Listener(), never)
    words = open_model(tmp_path / "model", of_pairs=False).target_vocabulary.words
    assert len(words) == 6 + 2
    assert not {b"<s>", b"<null>"} & set(words)


EMPTY = [
    ([], [b"w1"], "a.fr: expected at least one line, found an empty file"),
    ([b"", b" "], [b"w1"], "a.fr: expected a text to train on, found no word in 2 lines"),
    ([b"<s>"], [b"w1"], "expected a text to train on, found no word in 1 lines"),
    ([b"w1"], [b""], "dev.fr: expected held-out lines, found no line with words"),
    ([b"w1"], None, "expected a text to train on, found no line with words"),  # its one line is held out
]


@pytest.mark.parametrize(("lines", "dev", "message"), EMPTY)
def test_empty_texts_are_refused_and_leave_nothing(tmp_path, lines, dev, message):
    if dev is not None:
        (tmp_path / "dev.fr").write_bytes(b"".join(line + b"\n" for line in dev))
    with pytest.raises(InputError, match=message):
        train_language_model(request(tmp_path, lines, dev=dev and str(tmp_path / "dev.fr")), Listener(), never)
    assert not (tmp_path / "model").exists()


def test_a_shortlist_without_words_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"a\.fr: expected words seen 1,000 times or more, found none"):
        train_language_model(request(tmp_path, sentences(60), min_count=1000), Listener(), never)
    assert not (tmp_path / "model").exists()
