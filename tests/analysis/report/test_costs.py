"""What pairs cost, by class and by position, against sums done one by one."""

import math

import numpy as np
import pytest

from moses_rnn.analysis.phrase_samples import Pair
from moses_rnn.analysis.report import costs
from moses_rnn.analysis.report.costs import costs_by_class, costs_by_position
from moses_rnn.formats.phrase_forms import words
from moses_rnn.networks.inspection import word_log_probs
from tests.analysis.report.small import TABLE
from tests.analysis.scored import line as small_line
from tests.analysis.scored import scored
from tests.analysis.tiny import SOURCE_WORDS, TARGET_WORDS, checkpoint


def test_classes(tmp_path):
    table = scored(tmp_path / "t", TABLE)
    lengths = np.array([len(words(line.target)) for line in table.lines()])
    classes = costs_by_class(table.pairs(), lengths)
    assert list(classes) == ["all", "1 word", "2 words", "seen once", "seen 2–9 times"]
    assert [one.pairs for one in classes.values()] == [9, 6, 3, 4, 5]
    rnn = [0.3, 0.29, 0.28, 0.27, 0.26, 0.001, 0.001, 0.001, 0.2]
    assert classes["all"].nats == pytest.approx(-sum(map(math.log, rnn)))
    assert classes["all"].words == (3 + 2 + 2 + 3 + 2) + 3 * 2 + 3
    assert classes["all"].bins[:7].tolist() == [0, 6, 0, 0, 0, 0, 3]
    assert all(one.bins.sum() == one.pairs for one in classes.values())


def test_what_costs_very_much_is_in_the_last_part(tmp_path):
    scores = ["2.718", 1, 2.3e-9, "1e-38"]  # e is no probability, but old tables have it
    table = scored(tmp_path / "t", [small_line("a", "x", 1, score) for score in scores])
    bins = costs_by_class(table.pairs(), np.ones(4, np.int64))["all"].bins
    assert (bins[0], bins[-1]) == (2, 2)


def test_positions(monkeypatch):
    monkeypatch.setattr(costs, "FEWEST", 2)
    model = checkpoint()
    pairs = [Pair(b"a b", b"u"), Pair(b"c", b"u v w"), Pair(b"d e f", b"z nowhere")]
    expected = []
    for read, written in pairs:
        ids = [[v.index(w) if w in v else 0 for w in side.split()] for v, side in
               ((SOURCE_WORDS, read), (TARGET_WORDS, written))]  # fmt: skip
        expected.append(-word_log_probs(model.network, *ids))
    found = costs_by_position(model, pairs)
    assert [(one.place, one.words) for one in found] == [(1, 3), (2, 3), (3, 2)]
    for one in found:
        values = [costs_[one.place - 1] for costs_ in expected if len(costs_) >= one.place]
        assert one.nats == pytest.approx(np.mean(values), abs=1e-5)
    assert costs_by_position(model, []) == []
