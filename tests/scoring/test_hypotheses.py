"""Models that learn from the list that they score; the other ways of scoring are tested with the lists they add to."""

import numpy as np
import pytest

from moses_rnn.errors import FormatError, MosesRnnError
from moses_rnn.scoring import nbest_lists
from moses_rnn.scoring.hypotheses import InOrder
from tests.scoring.nbest_lists import added, nbest, parsed


class Pupil:
    """Scores by what it has learned, and remembers what it was asked."""

    num_scores = 1

    def __init__(self):
        self.learned, self.asked = [], []

    def log_probs(self, sources, targets):
        self.asked.append(list(targets))
        return np.full((len(targets), 1), -1.0 - len(self.learned))

    def learn(self, sentence):
        self.learned.append(sentence)


def test_a_sentence_s_hypotheses_are_scored_together_and_then_the_first_is_learned(monkeypatch):
    monkeypatch.setattr(nbest_lists, "LINES", 2)
    lines = [nbest(text, sentence=i) for i, text in [(0, b"b"), (0, b"a"), (0, b"b"), (2, b""), (5, b"c")]]
    pupil = Pupil()
    written = parsed(added(lines, [("L", InOrder(pupil, "n", "m"))], [b""] * 6).splitlines(keepends=True))
    assert [line.values("L0") for line in written] == [[-1], [-1], [-1], [-2], [-3]]
    assert pupil.asked == [[b"a", b"b"], [b""], [b"c"]]  # each distinct one once
    assert pupil.learned == [b"b", b"", b"c"]


@pytest.mark.parametrize(
    ("order", "line", "message"), [([1, 0], 2, "0 after 1"), ([0, 1, 0], 3, "0 after 1"), ([3, 1, 2], 2, "1 after 3")]
)
@pytest.mark.parametrize("together", [1, 100])
def test_sentences_out_of_order_are_refused(monkeypatch, order, line, message, together):
    monkeypatch.setattr(nbest_lists, "LINES", together)
    lines = [nbest(b"t2", sentence=i) for i in order]
    with pytest.raises(FormatError) as caught:
        added(lines, [("L", InOrder(Pupil(), "n", "m"))], [b""] * 4)
    expected = f"n:{line}: expected sentences in ascending order, for a model that goes on learning, found "
    assert str(caught.value) == expected + message


class Overwhelmed(Pupil):
    """Fails as soon as it has learned twice."""

    def log_probs(self, sources, targets):
        if len(self.learned) == 2:
            raise MosesRnnError("diverged", advice="Learn less.")
        return super().log_probs(sources, targets)


def test_a_failure_tells_model_list_and_sentence():
    lines = [nbest(text, sentence=i) for i, text in [(0, b"b"), (0, b"a"), (2, b""), (5, b"c"), (6, b"c")]]
    with pytest.raises(MosesRnnError) as caught:
        added(lines, [("L", InOrder(Overwhelmed(), "n", "m1,m2"))], [b""] * 7)
    place = "It was reading sentence 5 of n, whose list begins in line 4; the model is m1,m2."
    assert str(caught.value) == f"diverged\n  Learn less.\n  {place}"
