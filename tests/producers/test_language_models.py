"""Language models of sentences: what is predicted after what, in natural logarithms, whatever the company."""

import gzip
import math
import sys

import numpy as np
import pytest

from moses_rnn.errors import InputError, MosesRnnError
from moses_rnn.producers.backoff import Backoff
from moses_rnn.producers.cslm import CslmProducer
from moses_rnn.producers.kenlm import KenlmProducer
from tests.producers.tiny_lm import NBSP, SENTENCES, SMALL, checkpoint, random_model

CORPUS = [sentence.encode() for sentence in SENTENCES]


@pytest.fixture(scope="module")
def kenlm(tmp_path_factory):
    pytest.importorskip("kenlm", reason="kenlm is not installed: pip install 'moses-rnn[lm]'")
    return KenlmProducer(SMALL.write(tmp_path_factory.mktemp("lm")))


def backed_off(kenlm):
    n_grams = [tuple(word.encode() for word in (*h, w)) for h, after in SMALL.seen.items() for w in after]
    unigrams = [(word.encode(),) for word in SMALL.unigrams]
    return CslmProducer(
        checkpoint(), backoff=Backoff([*unigrams, *n_grams], kenlm, checkpoint().target_vocabulary, "lm")
    )


@pytest.fixture(params=["CSLM", "CSLM backed off", "KenLM"])
def producer(request):
    """Each of the models; those that need kenlm are skipped without it."""
    if request.param == "CSLM":
        return CslmProducer(checkpoint())
    kenlm = request.getfixturevalue("kenlm")
    return kenlm if request.param == "KenLM" else backed_off(kenlm)


B, UNK, END, LE, CHAT = 5, 0, 1, 2, 3
N_GRAMS = {
    "two words": (b"le chat", [(B, B, LE), (B, LE, CHAT), (LE, CHAT, END)]),
    "no word": (b"", [(B, B, END)]),
    "blanks": (b" le\t ", [(B, B, LE), (B, LE, END)]),
    "unknown": (b"rare le", [(B, B, UNK), (B, UNK, LE), (UNK, LE, END)]),
    "spelled as a boundary": (b"<s> </s> <unk>", [(B, B, UNK), (B, UNK, UNK), (UNK, UNK, UNK), (UNK, UNK, END)]),
    "no-break space": ("le\u00a0chat".encode(), [(B, B, UNK), (B, UNK, END)]),
}


@pytest.mark.parametrize(("sentence", "expected"), N_GRAMS.values(), ids=N_GRAMS)
def test_a_cslm_predicts_each_word_and_the_end_after_begins(sentence, expected):
    producer = CslmProducer(checkpoint())
    assert producer.n_grams([sentence]).tolist() == [list(n_gram) for n_gram in expected]
    assert producer.unknown([sentence]).tolist() == [n_gram[-1] == UNK for n_gram in expected]
    assert len(producer.word_log_probs([sentence])) == len(expected)


def test_n_grams_do_not_cross_sentences():
    producer = CslmProducer(checkpoint())
    each = [producer.n_grams([sentence]) for sentence in CORPUS]
    assert producer.n_grams(CORPUS).tolist() == np.concatenate(each).tolist()


def test_a_cslm_is_a_distribution_over_its_vocabulary():
    producer = CslmProducer(checkpoint())
    for history in SENTENCES:
        words = [f"{history} {word}".encode() for word in ("le", "chat", "neuf", "other")]
        last = [producer.word_log_probs([sentence])[-2] for sentence in words]
        last.append(producer.word_log_probs([history.encode()])[-1])
        assert sum(map(math.exp, last)) == pytest.approx(1, abs=1e-6)


def test_what_scores_mean(kenlm):
    producers = [CslmProducer(checkpoint()), backed_off(kenlm), kenlm]
    assert [(each.name, each.num_scores, each.meaning) for each in producers] == [
        ("CSLM", 1, "log p(target) of the CSLM, natural, </s> included; words outside the shortlist counted as <unk>"),
        (
            "CSLM",
            1,
            "log p(target) of the CSLM, natural, </s> included; words outside the shortlist backed off to an n-gram model",
        ),
        ("KENLM", 1, "log p(target) of an n-gram model by KenLM, natural, </s> included"),
    ]


def test_the_score_of_a_sentence_is_the_sum(producer):
    scores = producer.log_probs([b""] * len(CORPUS), CORPUS)
    assert scores.shape == (len(CORPUS), 1)
    assert scores[:, 0] == pytest.approx([producer.word_log_probs([sentence]).sum() for sentence in CORPUS])


def test_a_score_does_not_depend_on_order_and_company(producer):
    random = np.random.default_rng(1)
    words = [b"le", b"chat", b"neuf", b"rare", NBSP.encode(), b"jamais"]
    many = [b" ".join(random.choice(words, random.integers(9))) for _ in range(700)]
    together = producer.log_probs(many, many)
    order = random.permutation(len(many))
    assert np.array_equal(producer.log_probs(many, [many[i] for i in order]), together[order])
    assert np.array_equal(producer.log_probs(many[-9:], many[-9:]), together[-9:])
    assert all(producer.log_probs([b""], [many[i]]) == together[i] for i in range(50))


def test_nothing_to_score_is_no_score(producer):
    assert producer.log_probs([], []).shape == (0, 1)
    assert producer.word_log_probs([]).shape == (0,)
    assert producer.unknown([]).shape == (0,)


@pytest.mark.parametrize("model", [SMALL, *map(random_model, range(3))])
def test_kenlm_gives_natural_logs_of_what_the_file_says(tmp_path, kenlm, model):
    producer = KenlmProducer(model.write(tmp_path))
    expected = [value for sentence in SENTENCES for value in model.log_probs(sentence)]
    assert producer.word_log_probs(CORPUS) == pytest.approx(expected, abs=1e-5)
    assert producer.order == model.order


def test_kenlm_s_own_score_is_the_same_in_log_10(kenlm):
    own = [kenlm.model.score(sentence, bos=True, eos=True) for sentence in SENTENCES if NBSP not in sentence]
    ours = kenlm.log_probs([], [sentence for sentence in CORPUS if NBSP.encode() not in sentence])
    assert ours[:, 0] / math.log(10) == pytest.approx(own, abs=1e-5)


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
    assert CslmProducer(checkpoint()).unknown([sentence]).tolist() == [False, True, False, True, False]


def test_bytes_that_are_no_utf_8_are_not_taken_for_a_replacement_character(tmp_path, kenlm):
    (tmp_path / "lm").write_bytes(SMALL.arpa().replace(b"chat", "\ufffd".encode()))
    producer = KenlmProducer(tmp_path / "lm")
    assert producer.unknown(["\ufffd".encode(), b"\xff", b"chat"]).tolist() == [False, False, True, False, True, False]


def test_a_compressed_model(tmp_path, kenlm):
    (tmp_path / "lm.gz").write_bytes(gzip.compress(SMALL.arpa()))
    assert KenlmProducer(tmp_path / "lm.gz").word_log_probs(CORPUS).tolist() == kenlm.word_log_probs(CORPUS).tolist()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (None, "Cannot read model '.*/lm' .*No such file or directory"),
        (b"le chat\n", r'.*first non-empty line was "le chat" not .data'),
        (SMALL.arpa()[:-50], r"Cannot read model '.*/lm' \(lm/read_arpa"),
        (SMALL.arpa().replace(b"\t<s>\t", b"\tsss\t"), ".*<s>"),
    ],
)
def test_a_file_that_kenlm_cannot_read(tmp_path, kenlm, data, reason):
    if data is not None:
        (tmp_path / "lm").write_bytes(data)
    with pytest.raises(
        InputError, match=f"^{tmp_path}/lm: expected a language model that KenLM reads, found: {reason}"
    ):
        KenlmProducer(tmp_path / "lm")


def test_without_kenlm_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "kenlm", None)  # as if it were not installed
    message = (
        r"^kenlm is not installed: pip install 'moses-rnn\[lm\]' "
        r"\(it is compiled on installation, which needs a C\+\+ compiler\)$"
    )
    with pytest.raises(MosesRnnError, match=message) as refused:
        KenlmProducer("lm.arpa")
    assert refused.value.exit_code == 1
