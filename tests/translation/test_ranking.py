"""The two ways to rank what a beam search ends with: by the sum, and by the mean over words as RNNsearch's code does."""

import itertools

import pytest
import torch

from moses_rnn.networks.trie_scoring import SteppedPairs
from moses_rnn.networks.vocabulary import END_ID, UNKNOWN_ID
from moses_rnn.translation.search import BeamConfig, BeamSearch, best_of_each
from tests.networks.id_pairs import flat
from tests.scorers.bigrams import random_stepper

WORDS = (0, 2, 3)  # of K = 4
SOURCES = [[2, 3, 4], [], [6, 0], [5]]
TARGETS = [words for length in range(4) for words in itertools.product(WORDS, repeat=length)]
STEPPER = random_stepper(9, 4)


def forced(source, targets):
    """log p of targets by the way that scores pairs."""
    return SteppedPairs(STEPPER).log_probs(flat([source] * len(targets)), flat(targets)).tolist()


def search(**config):
    return BeamSearch(STEPPER, BeamConfig(**config))


KEYS = {"sum": lambda words, log_p: log_p, "mean": lambda words, log_p: log_p / (len(words) + 1)}


@pytest.mark.parametrize("score", KEYS)
def test_a_width_of_all_prefixes_is_an_exhaustive_search(score):
    everything = search(width=200, best=len(TARGETS), max_words=3, length_score=score)(SOURCES)
    for source, hypotheses in zip(SOURCES, everything, strict=True):
        expected = dict(zip(TARGETS, forced(source, TARGETS), strict=True))
        ended = [hypothesis for hypothesis in hypotheses if hypothesis.ended]
        assert [h.words for h in ended] == sorted(TARGETS, key=lambda w: -KEYS[score](w, expected[w]))
        assert [h.log_prob for h in ended] == pytest.approx([expected[h.words] for h in ended], abs=1e-12)


def next_log_probs(source, words):
    """Of every word behind some."""
    terms, _ = STEPPER.read(*flat([source]))
    prefixes = STEPPER.start(terms)
    for word in words:
        prefixes = STEPPER.step(terms, prefixes, torch.tensor([0]), torch.tensor([word]))
    return STEPPER.next_log_probs(terms, prefixes)[0].tolist()


def released(source, width, limit, banned=()):
    """The search of the released code, a hypothesis at a time; ended ones with log p, and what the limit left."""
    live, ended = [((), 0.0)], []
    for step in range(limit + 1):
        longer = [
            ((*words, word), total + log_p)
            for words, total in live
            for word, log_p in enumerate(next_log_probs(source, words))
            if word not in banned
        ]
        chosen = sorted(longer, key=lambda pair: -pair[1])[:width]
        ended += [(words[:-1], total) for words, total in chosen if words[-1] == END_ID]
        goes_on = [pair for pair in chosen if pair[0][-1] != END_ID]
        width -= len(chosen) - len(goes_on)
        if not width or step == limit:
            break
        live = goes_on
    left = [(goes_on[0][0][:-1], dict(live)[goes_on[0][0][:-1]])] if width else []
    return sorted(ended, key=lambda pair: -pair[1] / (len(pair[0]) + 1)), left


@pytest.mark.parametrize("width", [1, 2, 3, 5])
@pytest.mark.parametrize("limit", [0, 2, 6])
@pytest.mark.parametrize("banned", [(), (UNKNOWN_ID,)])
def test_the_mean_is_searched_as_the_released_code_does(width, limit, banned):
    config = {"width": width, "best": 9, "max_words": limit, "allow_unknown": not banned}
    for source, hypotheses in zip(SOURCES, search(**config, length_score="mean")(SOURCES), strict=True):
        ended, left = released(source, width, limit, banned)
        assert [h.words for h in hypotheses] == [words for words, _ in ended + left]
        assert [h.log_prob for h in hypotheses] == pytest.approx([total for _, total in ended + left], abs=1e-12)
        assert [h.ended for h in hypotheses] == [True] * len(ended) + [False] * len(left)
        assert len(ended) == width or left


def test_of_the_mean_only_the_wanted_are_given():
    many, few = (search(width=5, best=best, max_words=9, length_score="mean")(SOURCES) for best in (5, 2))
    assert [[h for h in hs if h.ended] for hs in few] == [[h for h in hs if h.ended][:2] for hs in many]


@pytest.mark.parametrize("score", KEYS)
@pytest.mark.parametrize("factor", [1, 3])
def test_each_source_has_a_limit_of_its_own(score, factor):
    """By the number of its words and the end symbol; what it meets is the same as if the limit were for all."""
    config = {"width": 3, "best": 2, "length_score": score}
    together = search(**config, words_per_source_word=factor, max_words=1)(SOURCES)
    for source, hypotheses in zip(SOURCES, together, strict=True):
        alone = search(**config, max_words=factor * (len(source) + 1))([source])
        assert [hypotheses] == alone
        assert max(len(h.words) for h in hypotheses) <= factor * (len(source) + 1)
    assert factor == 3 or any(not h.ended for hypotheses in together for h in hypotheses)


def test_the_best_of_each_come_in_order():
    totals = torch.tensor([-1.0, -5.0, -2.0, -0.5, -3.0, -4.0])
    sources = torch.tensor([0, 2, 0, 2, 0, 2])
    assert best_of_each(totals, sources, 2).tolist() == [0, 2, 3, 5]
    assert best_of_each(totals, sources, torch.tensor([1, 3, 1, 3, 1, 3])).tolist() == [0, 3, 5, 1]
    assert best_of_each(totals, sources, torch.zeros(6, dtype=torch.int64)).tolist() == []
