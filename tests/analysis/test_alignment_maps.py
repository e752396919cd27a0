"""α of chosen lines: the network's, with the words that it is of."""

import numpy as np
import pytest

from moses_rnn.analysis.alignment_maps import map_alignments
from moses_rnn.analysis.maps import phrase_points
from moses_rnn.errors import InputError
from moses_rnn.networks.compute import HERE
from moses_rnn.translation.search import GeneratedTarget
from moses_rnn.translation.translate import align
from tests.analysis.attentive import LINES, TRANSLATIONS, search
from tests.models.pairs import SOURCE, TARGET
from tests.models.rare import rare_model

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
        hypothesis = GeneratedTarget(tuple(TARGET.ids(one.target)), 0.0, ended=True)
        (alpha,) = align(model.make_stepper(HERE), [SOURCE.ids(one.source)], [hypothesis])
        assert one.alpha.shape == (len(one.rows), len(one.columns))
        np.testing.assert_allclose(one.alpha, alpha, atol=1e-6)
        np.testing.assert_allclose(one.alpha.sum(1), 1, atol=1e-6)


def test_rare_words_are_read_as_the_network_learned_them():
    model = rare_model("copyable")
    ids = model.source_vocabulary.ids([b"<unk1>", b"s2", b"<unk2>"])
    assert 0 not in ids
    _, (point,) = phrase_points(model, [b"s8 s2 s9"])
    np.testing.assert_array_equal(point, model.summaries([ids])[0])
    (found,) = map_alignments(model, [b"s8 s2 s9"], "src", [1])
    hypothesis = GeneratedTarget(
        tuple(model.target_vocabulary.ids(found.target)), 0.0, ended=len(found.rows) > len(found.target)
    )
    (alpha,) = align(model.make_stepper(HERE), [ids], [hypothesis])
    np.testing.assert_allclose(found.alpha, alpha, atol=1e-6)
    with pytest.raises(InputError, match="expected a model of plain words to align given translations, found one of"):
        map_alignments(model, [b"s2"], "src", [1], [b"t2"])
