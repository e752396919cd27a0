"""A CSLM as NPLM reads it: a reader and a network of single numbers, written after docs of the format, not our code."""

import math

import numpy as np
import pytest

from moses_rnn.moses.nplm import NEVER, nplm_network
from moses_rnn.networks.cslm import normalisers
from moses_rnn.networks.n_grams import NGramScores
from moses_rnn.table.table_blocks import PhraseIds
from tests.models.tiny_lm import SENTENCES, checkpoint

MEAN = 0.75
CORPUS = [sentence.encode() + b"\n" for sentence in SENTENCES]
K = 5  # <unk> </s> le chat neuf


class Nplm:
    """What NPLM makes of a file: sections that end with an empty line, words by blanks and tabs."""

    def __init__(self, data):
        assert data.endswith(b"\n\\end\n")
        sections = data.removesuffix(b"\\end\n").decode("utf-8").removesuffix("\n\n").split("\n\n")
        self.sections = {name: lines for name, *lines in (section.split("\n") for section in sections)}
        assert next(iter(self.sections)) == "\\config"
        self.config = dict(line.split(" ") for line in self.sections["\\config"])
        self.words = self.sections["\\input_vocab"]
        self.id = {word: i for i, word in enumerate(self.words)}

    def matrix(self, name, rows, columns):
        """A section's numbers; refused unless there are as many as the config says."""
        found = np.array([line.split("\t") for line in self.sections[name]], float)
        assert found.shape == (rows, columns)
        return found

    def layer(self, number, x, units):
        W = self.matrix(f"\\hidden_weights {number}", units, len(x))
        return np.maximum(0, W @ x + self.matrix(f"\\hidden_biases {number}", units, 1)[:, 0])

    def scores(self, context):
        """The output for every word after a context of ids, not normalised."""
        size = {key: int(value) for key, value in self.config.items() if value.isdigit()}
        assert len(context) == size["ngram_size"] - 1
        rows = self.matrix("\\input_embeddings", size["input_vocab_size"], size["input_embedding_dimension"])
        h = self.layer(1, rows[context].flatten(), size["num_hidden"])
        h = self.layer(2, h, size["output_embedding_dimension"])
        G = self.matrix("\\output_weights", size["output_vocab_size"], size["output_embedding_dimension"])
        return G @ h + self.matrix("\\output_biases", size["output_vocab_size"], 1)[:, 0]


def log_sum(scores):
    return math.log(np.exp(scores).sum())


def exported_lines(model, mean):
    weights = {name: tensor.numpy() for name, tensor in model.network.state_dict().items()}
    return nplm_network(model.config.order, model.target_vocabulary.words, weights, mean).lines()


@pytest.fixture
def exported():
    return Nplm(b"".join(exported_lines(checkpoint(), MEAN)))


@pytest.mark.parametrize("order", [2, 3, 6])
def test_log_probabilities_are_ours_but_for_the_mean(order):
    nplm = Nplm(b"".join(exported_lines(checkpoint(order), MEAN)))
    scores = NGramScores(checkpoint(order).network)
    n_grams = scores.n_grams(
        *PhraseIds(checkpoint(order).target_vocabulary.id_of)([text.encode() for text in SENTENCES])
    )
    log_p, log_Z = scores.n_gram_log_probs(n_grams), scores.log_normalisers(n_grams)
    for (*context, word), ours, sum_of_all in zip(n_grams.tolist(), log_p, log_Z, strict=True):
        scores = nplm.scores([nplm.id["<s>"] if i == K else i for i in context])
        assert scores[word] == pytest.approx(ours + sum_of_all - MEAN, abs=1e-4)
        assert scores[word] - log_sum(scores) == pytest.approx(ours, abs=1e-4)


def test_begin_and_nothing_are_never_predicted(exported):
    assert exported.scores([2, 3])[K:].tolist() == [NEVER, NEVER]


def test_nothing_is_the_mean_word(exported):
    rows = exported.matrix("\\input_embeddings", K + 2, 4)
    assert rows[-1] == pytest.approx(rows[:K].mean(0), abs=1e-6)  # of all words that can stand in a phrase
    assert rows[:-1] == pytest.approx(checkpoint().network.embedding.numpy(), abs=1e-8)


def test_how_far_log_z_is_from_0():
    given = checkpoint()
    nplm = Nplm(b"".join(exported_lines(given, 0.0)))
    n_grams = NGramScores(given.network).n_grams(
        *PhraseIds(given.target_vocabulary.id_of)([line.strip() for line in CORPUS if line.strip()])
    )
    contexts = [[nplm.id["<s>"] if i == K else i for i in context] for *context, _ in n_grams.tolist()]
    log_Z = np.array([log_sum(nplm.scores(context)[:K]) for context in contexts])
    found = normalisers(given.network, given.target_vocabulary, CORPUS, "dev.fr")
    assert found.tokens == sum(len(line.split()) + 1 for line in CORPUS if line.strip())
    assert found.mean == pytest.approx(log_Z.mean(), abs=1e-5)
    assert found.mean_abs == pytest.approx(abs(log_Z).mean(), abs=1e-5)
    assert found.mean_abs_without_mean == pytest.approx(abs(log_Z - log_Z.mean()).mean(), abs=1e-5)
