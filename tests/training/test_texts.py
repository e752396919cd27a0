"""Learning language models from texts: what the examples are, and how near they come to a language that is known."""

import dataclasses

import numpy as np
import pytest
import torch

from moses_rnn.errors import InputError
from moses_rnn.networks.cslm import CSLM, Cslm, CslmConfig
from moses_rnn.networks.rnnlm import Rnnlm, RnnlmConfig
from moses_rnn.networks.vocabulary import Vocabulary
from moses_rnn.training.model_folder import ModelFolder
from moses_rnn.training.presets import TrainingConfig
from moses_rnn.training.tasks import NGrams, Sentences
from moses_rnn.training.text_corpus import TextConfig, TextCorpus, build_text_corpus, build_texts, chosen_lines
from moses_rnn.training.trainer import NOBODY, Trainer
from tests.training.small import never, sentences

FAST = TrainingConfig(optimiser="adam", learning_rate=0.01, batch_size=32, evaluate_every=10**9, max_minutes=0)
VOCABULARY = Vocabulary([b"<unk>", b"</s>", *(b"w%d" % i for i in range(10))])
BEGIN = len(VOCABULARY)


def corpus_of(folder, order):
    """Sentences to learn and to judge by, for n-grams of an order."""
    return TextCorpus(*build_texts(sentences(800), sentences(60, seed=1), folder, VOCABULARY, order), VOCABULARY, None)


def test_the_penalty_brings_log_z_towards_0(tmp_path):
    texts, last = corpus_of(tmp_path, 4), []
    for penalty in (0.0, 0.03):
        model = Cslm(CslmConfig(BEGIN, 4, 8, 16, 16), seed=1)
        trainer = Trainer(NGrams(model, texts, dataclasses.replace(FAST, max_epochs=8), penalty))
        with ModelFolder(tmp_path / str(penalty), CSLM) as kept:
            last.append(trainer.run(kept, NOBODY, never).history[-1])
    assert 2 * last[1]["mean_abs_log_z"] < last[0]["mean_abs_log_z"]
    assert last[1]["nats_per_token"] < last[0]["nats_per_token"] + 0.1  # at next to no cost


def test_sentences_stand_between_their_boundaries(tmp_path):
    text, held_out = build_texts([b"w3 odd", b"", b" \t", b"w1\r\n"], [b"w2"], tmp_path, VOCABULARY, 3)
    assert text.flat.tolist() == [BEGIN, BEGIN, 5, 0, 1, BEGIN, BEGIN, 3, 1]
    assert held_out.flat.tolist() == [BEGIN, BEGIN, 4, 1]
    assert text.predicted(0, len(text.flat)).tolist() == [2, 3, 4, 7, 8]
    assert (text.tokens(), held_out.tokens()) == (5, 2)


def test_one_line_cannot_be_trained_on_and_held_out(tmp_path):
    with pytest.raises(InputError, match="^t: expected at least two lines with words, one of them to hold out"):
        build_text_corpus(lambda: [b"a b"], None, ("t", ""), tmp_path, 3, TextConfig())


def test_how_far_errors_go_changes_gradients_and_no_costs(tmp_path):
    texts = corpus_of(tmp_path, 2)
    tasks = [Sentences(Rnnlm(RnnlmConfig(BEGIN, 16), seed=1), texts, FAST, bptt) for bptt in (0, 1)]
    whole, cut = (task.cost(np.arange(16), 0) for task in tasks)
    assert whole.nats == cut.nats
    gradients = [
        torch.autograd.grad(cost.objective, task.model.U)[0] for cost, task in zip((whole, cut), tasks, strict=True)
    ]
    assert not torch.allclose(*gradients)


def test_lines_with_words_are_held_out(tmp_path):
    lines = [b"", *[b"w%d" % (i % 4) if i % 20 else b" " for i in range(2000)]]
    config = TextConfig(held_out_lines=50)
    corpus = build_text_corpus(lambda: iter(lines), None, ("a", ""), tmp_path, 2, config)
    assert (corpus.statistics.lines, corpus.statistics.held_out_lines) == (1900, 50)
    assert (corpus.text.tokens(), corpus.held_out.tokens()) == (2 * 1850, 2 * 50)


@pytest.mark.parametrize(
    ("lines", "config", "expected"),
    [
        (100, TextConfig(), 10),  # at most a tenth
        (20_000, TextConfig(), 1000),  # at least 1 000
        (3_000_000, TextConfig(), 3000),  # the paper's 0.1 %
        (20_000, TextConfig(held_out_lines=7), 7),
        (3, TextConfig(), 1),
    ],
)
def test_how_many_lines_are_held_out(lines, config, expected):
    assert chosen_lines(lines, config).sum() == expected
