"""From two texts to the folder of a network that reads sentences."""

import dataclasses
import json

import pytest
import torch

from moses_rnn.errors import CheckpointError
from moses_rnn.formats.rare_words import KINDS, RareWords
from moses_rnn.networks.folders import CONFIG
from moses_rnn.producers.open import open_model
from moses_rnn.training.sentence_config import ARCHITECTURES
from moses_rnn.training.sentence_run import train_sentence_model
from tests.training.sentences import sentence_request, write_texts
from tests.training.small import never
from tests.training.texts import Listener


def train(prefix, folder, stop=never, **changes):
    return train_sentence_model(sentence_request(prefix, **changes), folder, Listener(), stop)


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    write_texts(folder, "dev", 30, seed=1)
    return write_texts(folder, "train", 300)


@pytest.mark.parametrize("inverse", [False, True])
def test_shortlists_are_of_the_texts_and_a_presets_of_what_is_read_and_written(prefix, tmp_path, monkeypatch, inverse):
    few = dataclasses.replace(ARCHITECTURES["seq2seq"]["small"], words_read=5, shortlist=7)
    monkeypatch.setitem(ARCHITECTURES["seq2seq"], "small", few)
    for name, given, sizes in (
        ("preset", {}, (5, 7)),
        ("given", {"source_words": 3, "target_words": 4}, (4, 3) if inverse else (3, 4)),
    ):
        train(prefix, tmp_path / name, architecture="seq2seq", inverse=inverse, **given)
        checkpoint = open_model(tmp_path / name)
        assert (len(checkpoint.source_vocabulary) - 2, len(checkpoint.target_vocabulary) - 2) == sizes
        assert checkpoint.source_vocabulary.words[-1][:1] == (b"t" if inverse else b"s")


def weights(folder):
    return open_model(folder).network.state_dict()


def equal(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)


@pytest.fixture(scope="module")
def aligned(tmp_path_factory):
    """Texts whose words are aligned one to one, a third of them seen once."""
    folder = tmp_path_factory.mktemp("aligned")
    for name, count, seed in (("train", 300, 0), ("dev", 30, 1)):
        path = write_texts(folder, name, count, seed=seed)
        sources = [line.split() for line in path.with_suffix(".src").read_text().splitlines()]
        for side in ("src", "trg"):
            texts = [line.split() for line in path.with_suffix(f".{side}").read_text().splitlines()]
            for number, text in enumerate(texts):
                text[number % len(text)] = f"{name}{number}"
            path.with_suffix(f".{side}").write_text("".join(" ".join(text) + "\n" for text in texts))
        links = (" ".join(f"{i}-{i}" for i in range(len(source))) for source in sources)
        path.with_suffix(".links").write_text("".join(line + "\n" for line in links))
    return folder / "train"


def rare_options(prefix, kind, **more):
    links = {} if kind == "noalign" else {"alignment": str(prefix.with_suffix(".links"))}
    return {"rare": kind, "min_count": 2, **links, **more}


@pytest.mark.parametrize("architecture", ["rnnsearch", "seq2seq"])
@pytest.mark.parametrize("kind", KINDS)
def test_rare_words_are_learned_by_annotation(aligned, tmp_path, architecture, kind):
    outcome = train(aligned, tmp_path / "m", architecture=architecture, **rare_options(aligned, kind), max_epochs=3)
    costs = [record["nats_per_token"] for record in outcome.progress.history]
    assert costs[-1] < costs[0]
    model = open_model(tmp_path / "m")
    assert model.rare == RareWords(kind)
    assert json.loads((tmp_path / "m" / CONFIG).read_text())["rare"] == {"kind": kind, "window": 7}
    words = model.target_vocabulary.words
    assert {*RareWords(kind).written_tokens} <= {*words}
    assert len(words) == 2 + len(RareWords(kind).written_tokens) + 12


def test_a_run_of_rare_words_goes_on_and_remembers_how(aligned, tmp_path):
    how = rare_options(aligned, "posunk", rare_window=3, dev=str(aligned.with_name("dev")))
    how["dev_alignment"] = str(aligned.with_name("dev.links"))
    train(aligned, tmp_path / "whole", **how, max_epochs=2)
    answers = iter([False] * 6 + [True] * 99)
    train(aligned, tmp_path / "m", stop=lambda: next(answers), **how, max_epochs=2)
    for other in ({"rare_window": 4}, {"rare": "posall"}):
        with pytest.raises(CheckpointError, match="expected the input and options that this training began with"):
            train(aligned, tmp_path / "m", **how | other, max_epochs=2)
    with pytest.raises(CheckpointError, match="expected the input and options that this training began with"):
        train(aligned, tmp_path / "m", min_count=2, dev=how["dev"], max_epochs=2)
    train(aligned, tmp_path / "m", **how, max_epochs=2)
    assert equal(weights(tmp_path / "whole"), weights(tmp_path / "m"))
    provenance = open_model(tmp_path / "m").provenance
    assert provenance["alignment"] == "train.links"
    assert provenance["corpus"]["held_out_pairs"] == 30
