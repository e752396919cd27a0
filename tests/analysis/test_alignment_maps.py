"""α of chosen lines: the network's, with the words that it is of."""

import numpy as np

from moses_rnn.analysis.alignment_maps import AlignmentMap, map_alignments
from moses_rnn.networks.hardware import HERE
from moses_rnn.translation.search import BeamConfig, Hypothesis
from moses_rnn.translation.translate import Translator, align
from tests.analysis.attentive import LINES, TRANSLATIONS, search
from tests.scorers.pairs import SOURCE, TARGET

SOURCES, TARGETS = ([line.rstrip(b"\n") for line in lines] for lines in (LINES, TRANSLATIONS))


def test_a_given_translation_is_forced():
    model = search()
    maps = map_alignments(model, SOURCES, "src", [4, 1, 2], TARGETS)
    assert [one.line for one in maps] == [1, 2, 4]
    assert maps[0].columns == [b"s2", b"s3", b"s4", b"</s>"]
    assert maps[0].rows == [b"t2", b"t3", b"</s>"]
    assert maps[2].rows == [b"</s>"]  # an empty line is a translation too
    assert [one.unknown for one in maps] == [frozenset(), {b"t9"}, {b"s9"}]
    for one in maps:
        hypothesis = Hypothesis(tuple(TARGET.ids(one.target)), 0.0, ended=True)
        (alpha,) = align(model.make_stepper(HERE), [SOURCE.ids(one.source)], [hypothesis])
        assert one.alpha.shape == (len(one.rows), len(one.columns))
        np.testing.assert_allclose(one.alpha, alpha, atol=1e-6)
        np.testing.assert_allclose(one.alpha.sum(1), 1, atol=1e-6)


def test_without_one_the_network_writes_it_itself():
    model = search()
    maps = map_alignments(model, SOURCES, "src", [1, 4])
    config = BeamConfig(width=3, words_per_source_word=3)
    translator = Translator(model, HERE, config, aligned=1)
    for one, translation in zip(maps, translator([SOURCES[0], SOURCES[3]], "src"), strict=True):
        assert b" ".join(one.target) == translation.best.words
        assert len(one.rows) == len(one.target) + translation.best.ended
        np.testing.assert_allclose(one.alpha, translation.alpha, atol=1e-6)


ALPHA = np.array([[0.25, 0.75], [0.996, 0.004]], np.float32)


def test_both_sentences_can_be_read():
    assert AlignmentMap(1, [b"a", b"&apos;s"], [b"\xff"], ALPHA[:, :1]).text == "a 's → \\xff"
