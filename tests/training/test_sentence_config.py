"""Presets of networks that read sentences, and what overrides them."""

import pytest

from moses_rnn.training.sentence_config import ALL, ARCHITECTURES
from tests.training.sentences import sentence_request


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_each_architecture_has_both_presets(architecture):
    assert set(ARCHITECTURES[architecture]) == {"paper", "small"}
    assert ARCHITECTURES[architecture]["small"].words == ALL


def test_a_preset_is_the_devices_unless_it_is_named():
    nothing = dict.fromkeys(("hidden_size", "embedding_size", "maxout_size", "min_count", "max_epochs", "max_length"))
    assert sentence_request("t", preset=None, **nothing).chosen_preset() == ARCHITECTURES["rnnsearch"]["small"]
    on_gpu = sentence_request("t", preset=None, device="cuda:1", **nothing).chosen_preset()
    assert on_gpu == ARCHITECTURES["rnnsearch"]["paper"]


def test_what_is_requested_overrides_the_preset():
    preset = sentence_request("t", hidden_size=7, phases="groundhog", min_count=3, learning_rate=0.5).chosen_preset()
    assert preset.network["hidden_size"] == 7
    assert preset.network["phases"] == "groundhog"
    assert (preset.min_count, preset.training.learning_rate) == (3, 0.5)


def test_what_an_architecture_lacks_is_refused():
    with pytest.raises(ValueError, match=r"--alignment-size: --architecture rnnenc has no such size or switch"):
        sentence_request("t", architecture="rnnenc", alignment_size=5).chosen_preset()


def test_presets_are_shown_in_words():
    text = str(ARCHITECTURES["rnnsearch"]["paper"])
    assert text == "H 1000, E 620, A 1000, M 500, R 0; 30,000 words; adadelta, 80 a minibatch"
    assert "words seen 2 times" in str(ARCHITECTURES["rnnsearch"]["small"])
