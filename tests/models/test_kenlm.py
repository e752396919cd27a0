"""An n-gram model by KenLM: natural logarithms of what the file says, unknown words, files that it cannot read."""

import gzip
import math
import os
import sys

import pytest

from moses_rnn.errors import InputError, MosesRnnError
from moses_rnn.models.kenlm import KenlmScorer
from moses_rnn.table.table_blocks import Pairs
from tests.models.tiny_lm import CORPUS, SENTENCES, SMALL, checkpoint, random_model


@pytest.mark.parametrize("model", [SMALL, *map(random_model, range(3))])
def test_kenlm_gives_natural_logs_of_what_the_file_says(tmp_path, kenlm, model):
    scorer = KenlmScorer(model.write(tmp_path))
    expected = [value for sentence in SENTENCES for value in model.log_probs(sentence)]
    assert scorer.word_log_probs(CORPUS) == pytest.approx(expected, abs=1e-5)
    assert scorer.log_probs(Pairs(CORPUS, CORPUS)).ravel().tolist() == [
        pytest.approx(sum(model.log_probs(sentence)), abs=1e-5) for sentence in SENTENCES
    ]
    assert scorer.order == model.order


# Each is one unknown word to KenLM, as it is to the networks
UNKNOWN = {
    "of neither": b"jamais",
    "<unk>": b"<unk>",
    "begin": b"<s>",
    "end": b"</s>",
    "no UTF-8": b"\xff",
    "replacement character": "\ufffd".encode(),
    "NUL": b"le\0chat",
    "NUL alone": b"\0",
    "no-break space": "le\u00a0chat".encode(),
}


@pytest.mark.parametrize("word", UNKNOWN.values(), ids=UNKNOWN)
def test_words_that_no_model_knows(kenlm, word):
    sentence = b"le %b le rare" % word
    expected = [math.log(p) for p in (0.5, 0.1 * SMALL.backoff["<s>", "le"] * SMALL.backoff["le",], 0.2, 0.375)]
    assert kenlm.word_log_probs([sentence])[:-1] == pytest.approx(expected, abs=1e-5)
    assert kenlm.unknown([sentence]).tolist() == [False, True, False, False, False]
    assert checkpoint().make_language_model().unknown([sentence]).tolist() == [False, True, False, True, False]


def test_bytes_that_are_no_utf_8_are_not_taken_for_a_replacement_character(tmp_path, kenlm):
    (tmp_path / "lm").write_bytes(SMALL.arpa().replace(b"chat", "\ufffd".encode()))
    scorer = KenlmScorer(tmp_path / "lm")
    assert scorer.unknown(["\ufffd".encode(), b"\xff", b"chat"]).tolist() == [False, False, True, False, True, False]


@pytest.mark.parametrize("name", ["lm.gz", os.fsdecode(b"tw\xff.gz")])
def test_a_compressed_model(tmp_path, kenlm, name):
    (tmp_path / name).write_bytes(gzip.compress(SMALL.arpa()))
    assert KenlmScorer(tmp_path / name).word_log_probs(CORPUS).tolist() == kenlm.word_log_probs(CORPUS).tolist()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (None, "No such file or directory while opening .*/lm$"),
        (b"", r"End of file Byte: 0$"),
        (b"le chat\n", r"first non-empty line was not .data.\. Byte: 8$"),
        (SMALL.arpa()[:-50], "Word </s was not seen in the unigrams"),
        (SMALL.arpa().replace(b"\t<s>\t", b"\tsss\t"), "The ARPA file is missing <s>"),
    ],
)
def test_a_file_that_kenlm_cannot_read(tmp_path, kenlm, data, reason):
    if data is not None:
        (tmp_path / "lm").write_bytes(data)
    with pytest.raises(
        InputError, match=f"^{tmp_path}/lm: expected a language model that KenLM reads, found: {reason}"
    ):
        KenlmScorer(tmp_path / "lm")


def test_without_kenlm_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "kenlm", None)  # as if it were not installed
    message = (
        r"^kenlm is not installed: pip install 'moses-rnn\[lm\]' "
        r"\(installation compiles it, which needs a C\+\+ compiler\)$"
    )
    with pytest.raises(MosesRnnError, match=message) as refused:
        KenlmScorer("lm.arpa")
    assert refused.value.exit_code == 1
