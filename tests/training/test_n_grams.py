"""Learning a CSLM: every n-gram once an epoch, resumable to the same weights, held-out lines never learned."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
import torch

from moses_rnn.errors import InputError
from moses_rnn.models.checkpoint import load_checkpoint
from moses_rnn.models.cslm import CSLM, Cslm, CslmConfig
from moses_rnn.models.vocabulary import Vocabulary
from moses_rnn.training import n_grams as n_grams_module
from moses_rnn.training.config import CslmRequest, NGramConfig, TrainingConfig
from moses_rnn.training.cslm_run import train_cslm
from moses_rnn.training.model_folder import ModelFolder
from moses_rnn.training.n_grams import NGrams, TextConfig, build_texts, chosen_lines
from moses_rnn.training.trainer import Trainer

FAST = TrainingConfig(optimiser="adam", learning_rate=0.01, batch_size=32, evaluate_every=10**9, max_minutes=0)
VOCABULARY = Vocabulary([b"<unk>", b"</s>", *(b"w%d" % i for i in range(10))])
BEGIN = len(VOCABULARY)


def sentences(count, seed=0):
    """A language to be learned: each word is the one before plus one or two."""
    random = np.random.default_rng(seed)
    for _ in range(count):
        ids = random.integers(10) + np.append(0, np.cumsum(random.integers(1, 3, size=random.integers(1, 7))))
        yield b" ".join(b"w%d" % (i % 10) for i in ids)


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    return build_texts(sentences(800), sentences(60, seed=1), tmp_path_factory.mktemp("text"), VOCABULARY, 4)


def trainer_of(texts, learning=NGramConfig(), **changes):  # noqa: B008, frozen
    config = dataclasses.replace(FAST, **changes)
    model = Cslm(CslmConfig(len(VOCABULARY), 4, 8, 16, 16), seed=1)
    return Trainer(NGrams(model, *texts, config, learning), config)


def run(trainer, folder, listener, stop=lambda: False):
    with ModelFolder(folder, CSLM) as kept:
        return trainer.run(kept, listener, stop)


class Listener:
    def __init__(self):
        self.figures = []

    def reading(self, lines, share):
        pass

    def corpus_read(self, description):
        self.description = description

    def starting(self, trainer):
        pass

    def stepped(self, trainer, loss):
        pass

    def evaluated(self, trainer, is_best):
        self.figures.append(trainer.progress.history[-1])


def never():
    return False


def test_sentences_stand_between_their_boundaries(tmp_path):
    text, held_out = build_texts([b"w3 odd", b"", b" \t", b"w1\r\n"], [b"w2"], tmp_path, VOCABULARY, 3)
    assert text.flat.tolist() == [BEGIN, BEGIN, 5, 0, 1, BEGIN, BEGIN, 3, 1]
    assert held_out.flat.tolist() == [BEGIN, BEGIN, 4, 1]
    assert text.predicted(0, len(text.flat)).tolist() == [2, 3, 4, 7, 8]
    assert (text.tokens(), held_out.tokens()) == (5, 2)


def test_every_n_gram_comes_once_an_epoch(texts, monkeypatch):
    monkeypatch.setattr(n_grams_module, "BLOCK", 700)  # several blocks
    task = trainer_of(texts).task
    epochs = [list(task.batches(epoch, 0)) for epoch in (0, 1)]
    for batches in epochs:
        seen = np.concatenate(batches)
        assert np.array_equal(np.sort(seen), texts[0].predicted(0, len(texts[0].flat)))
        assert task.examples == len(seen)
    assert not np.array_equal(np.concatenate(epochs[0]), np.concatenate(epochs[1]))
    for first in (1, 20, 60, len(epochs[0])):
        rest = list(task.batches(0, first))
        assert [batch.tolist() for batch in rest] == [batch.tolist() for batch in epochs[0][first:]]


def test_learns_a_language(texts, tmp_path):
    listener = Listener()
    progress = run(trainer_of(texts, max_epochs=6), tmp_path, listener)
    costs = [figures["nats_per_token"] for figures in listener.figures]
    # a sentence: one first word of 10, on average 3.5 further ones of 2, one length of 6; 5.5 tokens with the end
    least = (math.log(10) + 3.5 * math.log(2) + math.log(6)) / 5.5
    assert least < costs[-1] < least + 0.25 < costs[0]
    assert [figures["n-grams"] for figures in listener.figures] == [progress.examples // 6 * n for n in range(1, 7)]


@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_a_stopped_run_goes_on_to_the_same_weights(texts, tmp_path, dropout):
    learning = NGramConfig(self_normalise=0.1)
    options = {"dropout": dropout, "threads": 2, "max_epochs": 2}
    whole = trainer_of(texts, learning, **options)
    run(whole, tmp_path / "whole", Listener())
    countdown = itertools.count(1)
    run(trainer_of(texts, learning, **options), tmp_path / "stopped", Listener(), lambda: next(countdown) >= 133)
    torch.manual_seed(99)
    resumed = trainer_of(texts, learning, **options)
    run(resumed, tmp_path / "stopped", Listener())
    assert resumed.resumed
    for old, new in zip(whole.model.parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(old, new)


def test_the_penalty_brings_log_z_towards_0(texts, tmp_path):
    last = []
    for penalty in (0.0, 0.03):
        listener = Listener()
        run(trainer_of(texts, NGramConfig(self_normalise=penalty), max_epochs=8), tmp_path / str(penalty), listener)
        last.append(listener.figures[-1])
    assert 2 * last[1]["mean_abs_log_z"] < last[0]["mean_abs_log_z"]
    assert last[1]["nats_per_token"] < last[0]["nats_per_token"] + 0.1  # at next to no cost


SHARES = [
    (100, TextConfig(), 10),  # at most a tenth
    (20_000, TextConfig(), 1000),  # at least 1 000
    (3_000_000, TextConfig(), 3000),  # the paper's 0.1 %
    (20_000, TextConfig(held_out_lines=7), 7),
    (3, TextConfig(), 1),
]


@pytest.mark.parametrize(("lines", "config", "expected"), SHARES)
def test_how_many_lines_are_held_out(lines, config, expected):
    assert chosen_lines(lines, config).sum() == expected


def request(folder, lines, **changes):
    """To train on these lines, in `folder`/model; what is not given is the preset's."""
    folder.joinpath("a.fr").write_bytes(b"".join(line + b"\n" for line in lines))
    sizes = {"order": 3, "embedding_size": 4, "first_size": 6, "second_size": 5, "shortlist": 6}
    learning = {"preset": "small", "optimiser": "adam", "batch_size": 32, "max_epochs": 1, "precision": "fp32"}
    where = {"texts": (str(folder / "a.fr"),), "model": folder / "model", "device": "cpu", "threads": 1, "seed": 1}
    nothing = {field.name: None for field in dataclasses.fields(CslmRequest)}
    return CslmRequest(**nothing | sizes | learning | where | {"restart": False, "quiet": False} | changes)


def test_a_run_leaves_a_folder(tmp_path):
    listener = Listener()
    lines = [*sentences(100), b"<s> <null> rare"]
    outcome = train_cslm(request(tmp_path, lines), listener, never)
    assert outcome.progress.finished == "1 epochs are done"
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


EMPTY = [
    ([], [b"w1"], "a.fr: expected at least one line, found an empty file"),
    ([b"", b" "], [b"w1"], "expected a text to train on, found no word in 2 lines"),
    ([b"<s>"], [b"w1"], "expected a text to train on, found no word in 1 lines"),
    ([b"w1"], [b""], "expected held-out lines, found no line with words"),
    ([b"w1"], None, "expected a text to train on, found no line with words"),  # its one line is held out
]


@pytest.mark.parametrize(("lines", "dev", "message"), EMPTY)
def test_empty_texts_are_refused_and_leave_nothing(tmp_path, lines, dev, message):
    if dev is not None:
        (tmp_path / "dev.fr").write_bytes(b"".join(line + b"\n" for line in dev))
    with pytest.raises(InputError, match=message):
        train_cslm(request(tmp_path, lines, dev=dev and str(tmp_path / "dev.fr")), Listener(), never)
    assert not (tmp_path / "model").exists()
