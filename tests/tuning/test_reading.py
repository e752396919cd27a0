import gzip
import itertools
import math

import pytest
from sacrebleu.metrics.bleu import BLEU

from moses_rnn.errors import FormatError
from moses_rnn.formats.nbest import parse_nbest
from moses_rnn.tuning.bleu import References
from moses_rnn.tuning.reading import read_tunable
from moses_rnn.tuning.tunable import choose
from moses_rnn.tuning.tune import format_ini
from tests.tuning.lists import LINES, NAMES, REFERENCE, SPARSE, nbest, read


def test_lists_become_numbers():
    points = read()
    assert points.names == NAMES
    assert points.features.tolist() == [[[-4, -1.5, -0.002], [-5, 0, -1]], [[-3, -1, 0], [0, 0, 0]]]
    assert points.present.tolist() == [[True, True], [True, False]]
    assert points.totals.tolist() == [[-4.5, -5.25], [-3.5, 0]]
    assert points.missing == points.constant == ()
    of_sentences = [
        [[4, 4, 3, 2, 1, 0, 4, 3, 2, 1], [4, 4, 4, 3, 2, 1, 4, 3, 2, 1]],
        [[2, 3, 2, 1, 0, 0, 2, 1, 0, 0], [0] * 10],
    ]
    assert points.statistics.tolist() == of_sentences


@pytest.mark.parametrize("change", [str.encode, lambda line: line + "\n", lambda line: line.encode() + b"\r\n"])
def test_references_are_bytes_or_text_with_or_without_line_ends(change):
    changed = read(references=[list(map(change, REFERENCE))])
    assert changed.statistics.tolist() == read().statistics.tolist()


def test_statistics_are_sacrebleus(multi30k):
    with gzip.open(multi30k / "nbest.val.100.gz") as lines:
        parsed = list(itertools.takewhile(lambda line: line.sentence < 20, parse_nbest(lines, "n")))
    references = gzip.decompress((multi30k / "val.fr.gz").read_bytes()).decode().split("\n")[:20]
    points = read_tunable(parsed, [references])
    assert points.present.sum() == len(parsed)
    for rank in (0, 7):
        hypotheses = [[line.hypothesis.decode() for line in parsed if line.sentence == i][rank] for i in range(20)]
        score = BLEU(tokenize="none", force=True).corpus_score(hypotheses, [references])
        expected = [score.sys_len, score.ref_len, *score.counts, *score.totals]
        assert points.statistics[:, rank].sum(0).tolist() == expected


def test_equal_hypotheses_are_compared_once(monkeypatch):
    counted = []
    original = References.statistics
    monkeypatch.setattr(References, "statistics", lambda *given: counted.append(given[1:]) or original(*given))
    lines = [nbest(b"A= 1"), nbest(b"A= 2"), nbest(b"A= 1", sentence=1), nbest(b"A= 1", b"la")]
    assert read(lines).statistics[0, :, 0].tolist() == [2, 2, 1]
    assert counted == [(0, b"le chat"), (1, b"le chat"), (0, b"la")]


def test_a_sentence_without_a_line_counts_as_an_empty_translation():
    points = read([LINES[1]])
    assert points.missing == (0,)
    assert points.statistics[0].tolist() == [[0, 4, 0, 0, 0, 0, 0, 0, 0, 0]]
    assert choose(points, [1, 1, 1]).tolist() == [0, 0]


def test_sparse_features_with_weights_are_one_feature():
    weights = {"LM0_a": 0.5, "TM0_x|y": 3.0}
    points = read(SPARSE, sparse_weights=weights)
    assert points.names == ("LM0_0", "Sparse_0")
    assert points.features[0].tolist() == [[-4, 0.5 * 2 + 3 * -1], [-5, 0.5 * 1 + 0.5 * 3]]
    assert read(SPARSE, sparse_weights={"LM0_a": 0.5}).features[0].tolist() == [[-4, 1], [-5, 2]]
    assert read(SPARSE, sparse_weights={}).names == ("LM0_0",)
    assert format_ini(points.names, [0.5, 0.25], weights) == b"[weight]\nLM0= 0.5\nLM0_a= 0.125\nTM0_x|y= 0.75\n"


@pytest.mark.parametrize(
    ("features", "weight"),
    [(b"A= 1 A_b= 1", math.nan), (b"A= 1 A_b= 1 2", 1.0)],
)
def test_a_sparse_feature_has_one_value_and_one_weight(features, weight):
    with pytest.raises(FormatError, match="n:1: expected "):
        read([nbest(features)], sparse_weights={"A_b": weight})
