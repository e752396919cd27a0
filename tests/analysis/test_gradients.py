import numpy as np
import pytest

from moses_rnn.analysis import gradients as module
from moses_rnn.analysis.gradients import as_grid, measure_gradients
from moses_rnn.analysis.inspection import state_gradients
from moses_rnn.errors import InputError
from tests.analysis.tiny import checkpoint

SOURCES, TARGETS = [b"a b", b"c", b"a zzz"], [b"u v", b"w", b""]
IDS = [[2, 3], [4], [2, 0]], [[2, 3], [4], []]


@pytest.mark.parametrize("at_once", [1, 64])
def test_means_are_over_the_words_of_all_sentences(at_once, monkeypatch):
    monkeypatch.setattr(module, "AT_ONCE", at_once)
    monkeypatch.setattr(module, "FEWEST", 1)
    found = measure_gradients({"m": checkpoint(), "n": checkpoint("groundhog")}, SOURCES, TARGETS)
    norms, distances = state_gradients(checkpoint().network, *IDS)
    assert found.words.tolist() == [6, 3, 1]
    np.testing.assert_allclose(found.norms["m"], [norms[distances == k].mean() for k in range(3)], rtol=1e-5)
    assert as_grid(found).header == ["k", "words", "m", "n"]
    assert as_grid(found).rows[2] == [2, 1, found.norms["m"][2], found.norms["n"][2]]


def test_distances_of_too_few_words_are_left_out(monkeypatch):
    monkeypatch.setattr(module, "FEWEST", 3)
    assert measure_gradients({"m": checkpoint()}, SOURCES, TARGETS).words.tolist() == [6, 3]
    monkeypatch.setattr(module, "FEWEST", 30)
    assert measure_gradients({"m": checkpoint()}, SOURCES, TARGETS).words.tolist() == [6]


def test_an_inverse_model_reads_the_targets(monkeypatch):
    monkeypatch.setattr(module, "FEWEST", 1)
    inverse = checkpoint(direction="target-to-source")
    swapped = measure_gradients({"m": inverse}, TARGETS, SOURCES)
    np.testing.assert_array_equal(
        swapped.norms["m"], measure_gradients({"m": checkpoint()}, SOURCES, TARGETS).norms["m"]
    )
    with pytest.raises(InputError, match="expected models of one direction"):
        measure_gradients({"m": inverse, "n": checkpoint()}, SOURCES, TARGETS)


def test_a_model_is_not_called_like_a_column():
    with pytest.raises(InputError, match="expected a model folder with another name, found words, a column's name"):
        measure_gradients({"words": checkpoint()}, SOURCES, TARGETS)


def test_models_must_cut_the_text_alike(monkeypatch):
    other = checkpoint()
    monkeypatch.setattr(other.target_vocabulary, "ids", lambda words: [2] * len(b"".join(words)))
    with pytest.raises(InputError, match="expected models that cut the text alike, found m and n"):
        measure_gradients({"m": checkpoint(), "n": other}, SOURCES, [b"uu v", b"w", b""])
