"""Phrase pairs as ids: each distinct pair once, shortlists, and what is held out."""

import math
from collections import Counter

import numpy as np
import pytest

from moses_rnn.errors import InputError
from moses_rnn.training import corpus as corpora
from moses_rnn.training.corpus import Corpus, CorpusConfig, build_corpus

PAIRS = [
    (b"le chat", b"the cat"),
    (b"le chat", b"cat"),
    (b"le chien", b"the dog"),
    (b"le chien noir", b"the black dog"),
    (b"un chat rare1", b"a cat"),
    (b"un chat rare2", b"a cat"),  # the same ids as the pair before, when rare words are unknown
    (b"le chat", b"the cat"),  # again
]


def spelled(corpus, rows):
    sides = []
    for phrases, vocabulary in ((corpus.source, corpus.source_vocabulary), (corpus.target, corpus.target_vocabulary)):
        words = []
        for row in rows:
            ids, _ = phrases.take(np.array([row]))
            words.append(b" ".join(vocabulary.words[i] for i in ids))
        sides.append(words)
    return list(zip(*sides, strict=True))


def test_each_distinct_pair_of_ids_is_there_once(tmp_path):
    corpus = build_corpus(PAIRS, tmp_path, CorpusConfig(source_words=4, target_words=9))
    everything = spelled(corpus, np.concatenate([corpus.training, corpus.held_out]))
    expected = {*PAIRS[:2], *PAIRS[2:4], (b"un chat <unk>", b"a cat")}
    # frequencies over distinct sources: le 3, chat 3, chien 2, un 2, then noir, rare1, rare2 with 1
    expected = {(s.replace(b"noir", b"<unk>"), t) for s, t in expected}
    assert Counter(everything) == Counter(expected)
    statistics = corpus.statistics
    assert (statistics.pairs, statistics.distinct_pairs, statistics.collapsed_pairs) == (7, 6, 1)


def test_shortlists_count_distinct_phrases_only(tmp_path):
    pairs = [(b"a", b"x%d" % i) for i in range(5)] + [(b"b c", b"y"), (b"b d", b"y")]
    corpus = build_corpus(pairs, tmp_path, CorpusConfig(source_words=2))
    assert corpus.source_vocabulary.words[2:] == [b"b", b"a"]  # `a` is five lines but one phrase
    assert corpus.statistics.source_coverage == 3 / 5  # b a b of a b c b d


def many_pairs(n=3000):
    random = np.random.default_rng(0)
    word = lambda: b"w%d" % random.integers(40)  # noqa: E731
    return [(b" ".join(word() for _ in range(random.integers(1, 4))), b" ".join(word() for _ in range(random.integers(1, 4)))) for _ in range(n)]  # fmt: skip


def test_no_source_phrase_is_on_both_sides_of_the_split(tmp_path):
    corpus = build_corpus(many_pairs(), tmp_path, CorpusConfig(held_out_pairs=200))
    training, held_out = ({s for s, _ in spelled(corpus, rows)} for rows in (corpus.training, corpus.held_out))
    assert not training & held_out
    assert 100 < corpus.statistics.held_out_pairs < 300
    assert corpus.statistics.training_pairs + corpus.statistics.held_out_pairs == len({*many_pairs()})


@pytest.mark.parametrize("seed", [39, 40])
def test_of_two_sources_one_is_trained_on(tmp_path, seed):
    """With seed 39, both would be held out."""
    corpus = build_corpus([(b"a b", b"x y"), (b"c", b"z")], tmp_path, CorpusConfig(seed=seed))
    assert (len(corpus.training), len(corpus.held_out)) == (1, 1)


def test_the_seed_decides_the_split(tmp_path):
    def split(seed):
        corpus = build_corpus(many_pairs(500), tmp_path / f"{seed}", CorpusConfig(seed=seed))
        return corpus.held_out.tolist(), corpus.digest

    assert split(1) == split(1)
    assert split(1)[0] != split(2)[0]


def test_one_large_source_is_always_trained_on(tmp_path):
    pairs = [(b"big", b"t%d" % i) for i in range(900)] + many_pairs(1500)
    for seed in range(20):
        corpus = build_corpus(pairs, tmp_path, CorpusConfig(held_out_pairs=100, seed=seed))
        assert b"big" not in {s for s, _ in spelled(corpus, corpus.held_out)}
        assert 0 < corpus.statistics.held_out_pairs < 200


def test_what_is_left_out_is_counted(tmp_path):
    pairs = [*PAIRS, (b"", b"x"), (b"x", b" "), (b"a b c d", b"x"), (b"x", b"a b c d")]
    corpus = build_corpus(pairs, tmp_path, CorpusConfig(max_length=3))
    assert (corpus.statistics.pairs, corpus.statistics.empty, corpus.statistics.too_long) == (11, 2, 2)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([], "training pairs: expected pairs to train on, found none in 0 lines"),
        ([(b"", b"a")], "training pairs: expected pairs to train on, found none in 1 line"),
        (
            [(b"a", b"b"), (b"a", b"c")],
            "expected at least two sources, one to train on and one to hold out, found one",
        ),
    ],
)
def test_too_little_is_refused(tmp_path, pairs, message):
    with pytest.raises(InputError, match=message):
        build_corpus(pairs, tmp_path, CorpusConfig())


@pytest.mark.parametrize(
    ("pairs", "held_out", "message"),
    [
        ([(b"a a a a", b"b")], PAIRS, "training pairs: expected pairs to train on, found none in 1 line"),
        (PAIRS, [(b"", b"b")], "held-out pairs: expected pairs to hold out, found none in 1 line"),
    ],
)
def test_each_of_two_texts_needs_pairs(tmp_path, pairs, held_out, message):
    with pytest.raises(InputError, match=message):
        build_corpus(pairs, tmp_path, CorpusConfig(max_length=3), held_out=held_out)


def test_the_unigram_baseline_is_its_derivation(tmp_path):
    corpus = build_corpus(PAIRS, tmp_path, CorpusConfig())
    counts = Counter(w for _, target in spelled(corpus, corpus.training) for w in [*target.split(), b"</s>"])
    total, size = sum(counts.values()), len(corpus.target_vocabulary)
    held_out = [w for _, target in spelled(corpus, corpus.held_out) for w in [*target.split(), b"</s>"]]
    expected = -sum(math.log((counts[w] + 1) / (total + size)) for w in held_out) / len(held_out)
    assert corpus.unigram_nats_per_token == pytest.approx(expected)


LINES = [(b" ".join([b"ab%d" % (i % 5)] * (i % 3 + 1)), b"c%d b%d" % (i % 4, i % 7)) for i in range(40)]


@pytest.mark.parametrize("backwards", [False, True])
def test_words_are_cut_into_subwords_of_both_sides(tmp_path, monkeypatch, backwards):
    monkeypatch.setattr(corpora, "CUT_AT_ONCE", 7)
    config = CorpusConfig(max_length=2, repeated=True, min_count=2, backwards=backwards, subwords=17)
    lines = [*LINES, (b"ab1 rare", b"b1"), (b"abb1", "▁".encode())]
    corpus = build_corpus(lines, tmp_path, config, held_out=[(b"ab0 ab0 ab0", b"c9")])
    subwords, one_way = corpus.source_vocabulary, -1 if backwards else 1
    assert (subwords, len(subwords)) == (corpus.target_vocabulary, 17)
    rows = [*corpus.training, *corpus.held_out]
    found = [tuple(side.take(np.array([row]))[0].tolist() for side in (corpus.source, corpus.target)) for row in rows]
    kept = [pair for pair in lines if len(pair[0].split()) <= 2]
    kept.append((b"ab0 ab0 ab0", b"c9"))
    assert found == [(subwords.ids(s.split()), subwords.ids(t.split())[::one_way]) for s, t in kept]
    assert corpus.statistics.too_long == len(lines) + 1 - len(kept)
    running = [word for pair in kept[:-1] for word in pair[0].split()]
    assert corpus.statistics.source_coverage == pytest.approx(1 - 1 / len(running))  # without `rare`
    corpus.save(tmp_path)
    again = Corpus.load(tmp_path)
    assert (again.digest, again.source_vocabulary.ids([b"abb1"])) == (corpus.digest, subwords.ids([b"abb1"]))
    np.testing.assert_array_equal(again.target.ends, corpus.target.ends)


def test_too_few_subwords_are_refused(tmp_path):
    with pytest.raises(
        InputError, match="subwords: expected at least 13, for 10 characters and three symbols, found 9"
    ):
        build_corpus(LINES, tmp_path, CorpusConfig(subwords=9))
