"""α of chosen lines: the network's, with the words that it is of."""

import numpy as np

from moses_rnn.analysis.alignment_maps import map_alignments
from moses_rnn.networks.hardware import HERE
from moses_rnn.translation.search import Hypothesis
from moses_rnn.translation.translate import align
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
