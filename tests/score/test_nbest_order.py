"""What a hypothesis gets does not depend on its place in the list."""

import itertools

import numpy as np
import pytest

from moses_rnn.score import nbest_lists
from moses_rnn.score.nbest_features import Feature, phrases
from moses_rnn.score.nbest_lists import ListFeatures, label_features
from moses_rnn.scorers.phrases import WordPenaltyScorer
from tests.score.nbest_lists import added, cslm, nbest, of_targets, parsed, whole_sentences
from tests.scorers.pairs import TARGET, scorer


def random_list(sentences=6, hypotheses=12, seed=4):
    """Lines with segmentations, and their sources; words are s0…s9 and t0…t9, of which some are outside shortlists."""
    random = np.random.default_rng(seed)
    sources = [b" ".join(b"s%d" % i for i in random.integers(0, 10, 8)) for _ in range(sentences)]
    lines = []
    for sentence, _ in itertools.product(range(sentences), range(hypotheses)):
        ends = [0, *sorted(set(random.integers(1, 8, 3).tolist())), 8]
        spans = [b"%d-%d=%d-%d" % (a, b - 1, a, b - 1) for a, b in itertools.pairwise(ends)]
        hypothesis = b" ".join(b"t%d" % i for i in random.integers(0, 10, 8))
        lines.append(nbest(hypothesis, b" ||| " + b" ".join(spans), sentence))
    return lines, sources


LINES, OF_LINES = random_list()
ORDERS = {
    "backwards": range(len(LINES))[::-1],
    "within sentences": np.random.default_rng(1).permuted(np.arange(len(LINES)).reshape(6, 12), axis=1).ravel(),
    "all": np.random.default_rng(2).permutation(len(LINES)),
}
SCORERS = {
    "CSLM": lambda: of_targets(cslm()),
    "WP": lambda: of_targets(WordPenaltyScorer(TARGET)),
    "RNN": lambda: Feature(scorer()[0], phrases),
}


class Lengths:
    """A scorer of scores whose sums are rounded, as those of float32 numbers hardly ever are."""

    def log_probs(self, pairs):
        return np.array([-len(s) / 3 - len(t) / 7 for s, t in zip(pairs.sources, pairs.targets, strict=True)])


def test_a_sum_does_not_depend_on_the_lines_before():
    lines = parsed(LINES)
    sources = [OF_LINES[line.sentence] for line in lines]
    scorer = Feature(Lengths(), phrases)
    alone = [scorer.scores([line], [source], "n") for line, source in zip(lines, sources, strict=True)]
    assert scorer.scores(lines, sources, "n").tobytes() == np.concatenate(alone).tobytes()


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_lines_in_another_order_are_the_same_lines(order):
    named = [(name, SCORERS[name]()) for name in ("CSLM", "WP", "RNN")]
    before = added(LINES, named, OF_LINES).splitlines()
    assert added([LINES[i] for i in order], named, OF_LINES).splitlines() == [before[i] for i in order]


def test_a_sentence_is_never_parted(monkeypatch):
    monkeypatch.setattr(nbest_lists, "LINES", 13)
    features = label_features(None, whole_sentences())
    blocks = list(ListFeatures("n", OF_LINES, features).add(parsed(LINES)))
    assert [block.count(b"\n") for block in blocks] == [24, 24, 24]
    monkeypatch.undo()
    assert b"".join(blocks) == added(LINES, whole_sentences(), OF_LINES)
