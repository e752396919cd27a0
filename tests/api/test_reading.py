"""Pairs as a network reads them, before anything is computed."""

from moses_rnn.api.pairs import PairReading, pairs_of
from moses_rnn.producers.open import open_model


def read(folder, *pairs):
    reading = PairReading(open_model(folder))
    of_network = reading.pairs(list(reading.checked(pairs_of(pairs))))
    return list(zip(of_network.sources, of_network.targets, strict=True))


def test_plain_pairs_are_read_as_they_stand(models):
    assert read(models / "rnn", ("a  b", "c|d")) == [(b"a  b", b"c|d")]


def test_of_words_with_factors_one_is_read(models):
    assert read(models / "factored", ("a|b c|d", "e")) == [(b"b d", b"e")]


def test_gaps_are_numbered(models):
    pair = "a [X][X] [X][X] [X]", "[X][X] b [X][X] [X]", "1-2 2-0"
    assert read(models / "rules", pair, ("a [X]", "b [X]")) == [
        (b"a [X][X]1 [X][X]2 [X]", b"[X][X]2 b [X][X]1 [X]"),
        (b"a [X]", b"b [X]"),
    ]


def test_alignments_go_with_the_pairs(models):
    reading = PairReading(open_model(models / "rare"))
    pairs = list(reading.checked(pairs_of([("a b", "c", "0-0 1-0"), ("a", "b", "")])))
    assert reading.pairs(pairs).alignments == [b"0-0 1-0", b""]


def test_sources_alone_are_in_the_networks_words(models):
    assert list(PairReading(open_model(models / "factored")).sources([b"a|b  c|d"])) == [b"b d"]
