"""A CSLM as NPLM reads it: a reader and a network of single numbers, written after docs of the format, not our code."""

import math

import numpy as np
import pytest

from moses_rnn.moses.nplm import NEVER
from moses_rnn.networks.cslm import normalisers, nplm_network
from moses_rnn.networks.n_grams import NGramScores
from moses_rnn.table.table_blocks import PhraseIds
from tests.scorers.tiny_lm import SENTENCES, checkpoint

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
        found = [[float(value) for value in line.split("\t")] for line in self.sections[name]]
        assert [len(found), {len(row) for row in found}] == [rows, {columns}]
        return found

    def layer(self, number, inputs, units):
        weights = self.matrix(f"\\hidden_weights {number}", units, len(inputs))
        biases = self.matrix(f"\\hidden_biases {number}", units, 1)
        return [max(0.0, dot(row, inputs) + b) for row, (b,) in zip(weights, biases, strict=True)]

    def scores(self, context):
        """The output for every word after a context of ids, not normalised; short ones are filled up on the left."""
        size = {key: int(value) for key, value in self.config.items() if value.isdigit()}
        missing = "<s>" if context[:1] == [self.id["<s>"]] else "<null>"
        context = [self.id[missing]] * (size["ngram_size"] - 1 - len(context)) + context
        rows = self.matrix("\\input_embeddings", size["input_vocab_size"], size["input_embedding_dimension"])
        x = [value for word in context for value in rows[word]]
        h = self.layer(2, self.layer(1, x, size["num_hidden"]), size["output_embedding_dimension"])
        weights = self.matrix("\\output_weights", size["output_vocab_size"], size["output_embedding_dimension"])
        biases = self.matrix("\\output_biases", size["output_vocab_size"], 1)
        return [dot(row, h) + b for row, (b,) in zip(weights, biases, strict=True)]


def dot(row, values):
    return sum(a * b for a, b in zip(row, values, strict=True))


def exported_lines(model, mean):
    return nplm_network(model.network, model.target_vocabulary, mean).lines()


@pytest.fixture
def exported():
    return Nplm(b"".join(exported_lines(checkpoint(), MEAN)))


@pytest.mark.parametrize("order", [2, 3, 6])
def test_log_probabilities_are_ours_but_for_the_mean(order):
    nplm = Nplm(b"".join(exported_lines(checkpoint(order), MEAN)))
    scores = NGramScores(checkpoint(order).network)
    n_grams = scores.n_grams(
        *PhraseIds(checkpoint(order).target_vocabulary.id_of())([text.encode() for text in SENTENCES])
    )
    log_p, log_Z = scores.n_gram_log_probs(n_grams), scores.log_normalisers(n_grams)
    for (*context, word), ours, sum_of_all in zip(n_grams.tolist(), log_p, log_Z, strict=True):
        scores = nplm.scores([nplm.id["<s>"] if i == K else i for i in context])
        assert scores[word] == pytest.approx(ours + sum_of_all - MEAN, abs=1e-4)
        assert scores[word] - math.log(sum(map(math.exp, scores))) == pytest.approx(ours, abs=1e-4)


def test_begin_and_nothing_are_never_predicted(exported):
    assert exported.scores([2, 3])[K:] == [NEVER, NEVER]
    assert sum(math.exp(score) for score in exported.scores([2, 3])[K:]) < 1e-40


def test_nothing_is_the_mean_word(exported):
    rows = np.array(exported.matrix("\\input_embeddings", K + 2, 4))
    assert rows[-1] == pytest.approx(rows[:K].mean(0), abs=1e-6)  # of all words that can stand in a phrase
    assert rows[:-1] == pytest.approx(checkpoint().network.embedding.numpy(), abs=1e-8)


def test_a_short_context_is_filled_up_with_begins_or_with_nothing(exported):
    begin, nothing = exported.id["<s>"], exported.id["<null>"]
    assert exported.scores([2]) == exported.scores([nothing, 2]) != exported.scores([begin, 2])
    assert exported.scores([begin]) == exported.scores([begin, begin])


def test_how_far_log_z_is_from_0():
    given = checkpoint()
    nplm = Nplm(b"".join(exported_lines(given, 0.0)))
    n_grams = NGramScores(given.network).n_grams(
        *PhraseIds(given.target_vocabulary.id_of())([line.strip() for line in CORPUS if line.strip()])
    )
    contexts = [[nplm.id["<s>"] if i == K else i for i in context] for *context, _ in n_grams.tolist()]
    log_Z = [math.log(sum(map(math.exp, nplm.scores(context)[:K]))) for context in contexts]
    mean = sum(log_Z) / len(log_Z)
    found = normalisers(given.network, given.target_vocabulary, CORPUS, "dev.fr")
    assert found.tokens == sum(len(line.split()) + 1 for line in CORPUS if line.strip())
    assert found.mean == pytest.approx(mean, abs=1e-5)
    assert found.mean_abs == pytest.approx(sum(map(abs, log_Z)) / len(log_Z), abs=1e-5)
    assert found.mean_abs_without_mean == pytest.approx(sum(abs(z - mean) for z in log_Z) / len(log_Z), abs=1e-5)
