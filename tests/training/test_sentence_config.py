"""Presets of networks that read sentences, and what overrides them."""

import dataclasses
import re

import pytest

from moses_rnn.training.sentence_config import ALL, ARCHITECTURES
from tests.training.sentences import sentence_request


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_each_architecture_has_both_presets(architecture):
    assert set(ARCHITECTURES[architecture]) == {"paper", "small"}
    small = ARCHITECTURES[architecture]["small"]
    assert (small.words_read, small.words_written, small.min_count) == (ALL, ALL, 2)


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


def test_switches_of_seq2seq_are_its_own():
    switches = {"source_order": "forward", "peepholes": False, "layers": 3}
    preset = sentence_request("t", architecture="seq2seq", maxout_size=None, **switches).chosen_preset()
    assert switches.items() <= preset.network.items()
    for name, value in switches.items():
        with pytest.raises(ValueError, match="--architecture rnnsearch has no such size or switch"):
            sentence_request("t", **{name: value}).chosen_preset()


def test_seq2seqs_paper_is_the_papers():
    paper = ARCHITECTURES["seq2seq"]["paper"]
    assert paper.network == {"layers": 4, "hidden_size": 1000, "embedding_size": 1000}
    assert (paper.words_read, paper.words_written) == (160_000, 80_000)
    training = paper.training
    assert (training.optimiser, training.learning_rate, training.schedule) == ("sgd", 0.7, "half-epochs")
    assert (training.batch_size, training.reduction, training.clip_norm) == (128, "pair-mean", 5)
    assert (training.max_epochs, training.initial_deviation, training.dropout) == (7.5, 0.08, 0)


def test_seq2seqs_small_learns_as_the_others_do():
    small, others = (ARCHITECTURES[name]["small"].training for name in ("seq2seq", "rnnsearch"))
    assert small == dataclasses.replace(others, initial_deviation=0.25, clip_norm=5.0, max_epochs=18.0)
    assert (others.learning_rate, others.cool_down, others.averaging, others.dropout) == (0.004, 0.5, 0.1, 0.3)


def test_presets_are_shown_in_words():
    text = str(ARCHITECTURES["rnnsearch"]["paper"])
    assert text == "H 1000, E 620, A 1000, M 500, R 0; 30,000 words; adadelta, 80 a minibatch"
    text = str(ARCHITECTURES["seq2seq"]["paper"])
    assert text == "L 4, H 1000, E 1000; 160,000 and 80,000 words; sgd, 128 a minibatch"
    assert "words seen 2 times" in str(ARCHITECTURES["rnnsearch"]["small"])


def test_partitions_are_of_the_training():
    training = sentence_request("t", partition_words=100, reshuffle=True).chosen_preset().training
    assert (training.partition_words, training.reshuffle) == (100, True)
    assert "partitions of 100 words, reshuffled" in training.describe()
    training = sentence_request("t").chosen_preset().training
    assert (training.partition_words, training.reshuffle) == (0, False)
    assert "partitions" not in training.describe()


ALONE = {
    "reshuffling": ({"reshuffle": True}, "--reshuffle is for --partition-words: without, each epoch has its own order"),
    "a window": ({"rare_window": 3}, "--rare-window is for --rare"),
    "a window of no distances": (
        {"rare": "noalign", "rare_window": 3},
        "--rare-window: --rare noalign writes no distances",
    ),
    "an alignment": ({"alignment": "a"}, "--alignment is for --rare"),
    "an alignment of dev": ({"dev_alignment": "a"}, "--dev-alignment is for --rare"),
    "no alignment": ({"rare": "posunk"}, "--rare posunk needs --alignment, by which words are annotated"),
    "none of dev": (
        {"rare": "copyable", "alignment": "a", "dev": "d"},
        "--rare copyable needs --dev-alignment, by which words are annotated",
    ),
    "no dev": ({"rare": "noalign", "dev_alignment": "a"}, "--dev-alignment is for --dev"),
    "rnnenc": ({"rare": "noalign", "architecture": "rnnenc"}, "--rare: --architecture rnnenc has no such switch"),
}


@pytest.mark.parametrize("case", ALONE)
def test_what_is_of_no_use_alone_is_refused(case):
    changes, message = ALONE[case]
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        sentence_request("t", **changes).chosen_preset()


def test_without_links_to_need_rare_words_need_no_alignment():
    assert sentence_request("t", rare="noalign", dev="d").chosen_preset().network["hidden_size"] == 16
