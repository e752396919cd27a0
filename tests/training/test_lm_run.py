"""From texts to the folder of a language model."""

import dataclasses
import gzip
import itertools

import pytest
import torch

from moses_rnn.errors import CheckpointError, InputError
from moses_rnn.models.bengio import BENGIO
from moses_rnn.models.checkpoint import load_checkpoint
from moses_rnn.models.cslm import CSLM
from moses_rnn.models.rnnlm import RNNLM
from moses_rnn.training.lm_config import LanguageModelRequest
from moses_rnn.training.lm_run import train_language_model
from tests.training.texts import Listener, never, sentences

CSLM_SIZES = {"order": 3, "embedding_size": 4, "first_size": 6, "second_size": 5}
OF_CSLM = dict.fromkeys(CSLM_SIZES)  # which other networks do not have
NETWORKS = {
    "cslm": (CSLM, {}),
    "bengio": (BENGIO, OF_CSLM | {"order": 3, "embedding_size": 4, "hidden_size": 5}),
    "rnnlm": (RNNLM, OF_CSLM | {"hidden_size": 5}),
}


def request(folder, lines, **changes):
    """To train on these lines, in `folder`/model; what is not given is the preset's."""
    folder.joinpath("a.fr").write_bytes(b"".join(line + b"\n" for line in lines))
    sizes = {"network": "cslm", **CSLM_SIZES, "shortlist": 6}
    learning = {"preset": "small", "optimiser": "adam", "batch_size": 32, "max_epochs": 1, "precision": "fp32"}
    where = {"texts": (str(folder / "a.fr"),), "model": folder / "model", "device": "cpu", "threads": 1, "seed": 1}
    nothing = {field.name: None for field in dataclasses.fields(LanguageModelRequest)}
    return LanguageModelRequest(**nothing | sizes | learning | where | {"restart": False, "quiet": False} | changes)


def test_a_run_leaves_a_folder(tmp_path):
    listener = Listener()
    lines = [*sentences(100), b"<s> <null> rare"]
    outcome = train_language_model(request(tmp_path, lines), listener, never)
    assert outcome.progress.finished == "1 epoch is done"
    loaded = load_checkpoint(tmp_path / "model", CSLM)
    assert len(loaded.target_vocabulary) == 6 + 2
    assert not {b"<s>", b"<null>"} & set(loaded.target_vocabulary.words)
    assert listener.description[0].startswith("text: 101 lines, ")
    assert listener.description[2] == "held out: 10 lines"
    assert loaded.provenance["texts"] == ["a.fr"]
    assert loaded.provenance["history"][0]["n-grams"] > 0
    assert sorted(path.name for path in (tmp_path / "model" / "training").iterdir()) == [
        "held-out.tokens",
        "lock",
        "log.jsonl",
        "state.safetensors",
        "text.tokens",
    ]


@pytest.mark.parametrize(
    ("preset", "changes", "bound"),
    [("paper", {}, 0.01), ("small", {}, 0.1), ("small", {"initial_deviation": 0.5}, 0.5)],
)
@pytest.mark.parametrize("network", ["cslm", "bengio"])
def test_feed_forward_networks_begin_within_their_bound(tmp_path, network, preset, changes, bound):
    unlearned = {"learning_rate": 1e-30, "weight_decay": 0.0, "max_epochs": 0.1, "preset": preset}
    sizes = NETWORKS[network][1] | {"network": network}
    train_language_model(request(tmp_path, sentences(100), **unlearned, **sizes, **changes), Listener(), never)
    weights = load_checkpoint(tmp_path / "model", NETWORKS[network][0]).model.parameters()
    assert 0.8 * bound < max(weight.abs().max() for weight in weights) <= bound * (1 + 1e-6)


EMPTY = [
    ([], [b"w1"], "a.fr: expected at least one line, found an empty file"),
    ([b"", b" "], [b"w1"], "a.fr: expected a text to train on, found no word in 2 lines"),
    ([b"<s>"], [b"w1"], "expected a text to train on, found no word in 1 lines"),
    ([b"w1"], [b""], "dev.fr: expected held-out lines, found no line with words"),
    ([b"w1"], None, "expected a text to train on, found no line with words"),  # its one line is held out
]


@pytest.mark.parametrize(("lines", "dev", "message"), EMPTY)
def test_empty_texts_are_refused_and_leave_nothing(tmp_path, lines, dev, message):
    if dev is not None:
        (tmp_path / "dev.fr").write_bytes(b"".join(line + b"\n" for line in dev))
    with pytest.raises(InputError, match=message):
        train_language_model(request(tmp_path, lines, dev=dev and str(tmp_path / "dev.fr")), Listener(), never)
    assert not (tmp_path / "model").exists()


def test_a_shortlist_without_words_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"a\.fr: expected words seen 1,000 times or more, found none"):
        train_language_model(request(tmp_path, sentences(60), min_count=1000), Listener(), never)
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(("network", "sizes"), [(name, sizes) for name, (_, sizes) in NETWORKS.items()])
def test_a_stopped_run_goes_on_to_the_same_weights(tmp_path, network, sizes):
    lines, changes = list(sentences(60)), {"network": network, **sizes, "dropout": 0.2, "max_epochs": 3}
    for name in ("whole", "stopped"):
        (tmp_path / name).mkdir()
    whole = request(tmp_path / "whole", lines, **changes)
    train_language_model(whole, Listener(), never)
    parts, countdown = request(tmp_path / "stopped", lines, **changes), itertools.count(1)
    outcome = train_language_model(parts, Listener(), lambda: next(countdown) >= 6)
    assert not outcome.progress.finished
    torch.manual_seed(99)
    outcome = train_language_model(parts, Listener(), never)
    assert outcome.progress.finished == "3 epochs are done"
    written = [(path / "model.safetensors").read_bytes() for path in (whole.model, parts.model)]
    assert written[0] == written[1]


@pytest.mark.parametrize(("network", "kind", "sizes"), [(name, *row) for name, row in NETWORKS.items()])
def test_every_network_leaves_a_folder_of_its_kind(tmp_path, network, kind, sizes):
    listener = Listener()
    lines = [*sentences(100), b"once <s>"]
    train_language_model(
        request(tmp_path, lines, network=network, **sizes, min_count=2, shortlist=None), listener, never
    )
    loaded = load_checkpoint(tmp_path / "model", kind)
    assert b"once" not in loaded.target_vocabulary.words
    assert b"<s>" not in loaded.target_vocabulary.words
    assert loaded.provenance["text_options"]["min_count"] == 2
    assert loaded.provenance["text"]["lines"] == 101
    assert listener.figures[0]["sentences" if network == "rnnlm" else "n-grams"] > 0


def test_another_network_does_not_go_on_with_a_run(tmp_path):
    lines = list(sentences(60))
    train_language_model(request(tmp_path, lines), Listener(), never)
    _, sizes = NETWORKS["bengio"]
    with pytest.raises(CheckpointError, match="expected a model of network 'bengio', found 'cslm'"):
        train_language_model(request(tmp_path, lines, network="bengio", **sizes), Listener(), never)
    assert load_checkpoint(tmp_path / "model", CSLM)


def test_another_reach_does_not_go_on_with_a_run(tmp_path):
    lines, (_, sizes) = list(sentences(60)), NETWORKS["rnnlm"]
    train_language_model(request(tmp_path, lines, network="rnnlm", **sizes), Listener(), never)
    with pytest.raises(CheckpointError, match="bptt 0, now 1"):
        train_language_model(request(tmp_path, lines, network="rnnlm", **sizes, bptt=1), Listener(), never)


@pytest.mark.parametrize("network", NETWORKS)
def test_a_text_that_was_cut_short_is_refused_and_leaves_nothing(tmp_path, network):
    lines = b"".join(line + b"\n" for line in sentences(200))
    (tmp_path / "cut.gz").write_bytes(gzip.compress(lines)[:-20])
    wanted = request(tmp_path, [], network=network, **NETWORKS[network][1], texts=(str(tmp_path / "cut.gz"),))
    with pytest.raises(InputError, match="cut.gz"):
        train_language_model(wanted, Listener(), never)
    assert not (tmp_path / "model").exists()


def test_one_thread_or_several_know_the_same_sentences(tmp_path):
    _, sizes = NETWORKS["rnnlm"]
    costs = []
    for threads in (1, 2):
        (tmp_path / str(threads)).mkdir()
        changes = {"network": "rnnlm", **sizes, "batch_size": 128, "threads": threads}
        listener = Listener()
        train_language_model(request(tmp_path / str(threads), list(sentences(300)), **changes), listener, never)
        costs.append(listener.figures[-1]["nats_per_token"])
    assert costs[0] == pytest.approx(costs[1], rel=1e-4)
