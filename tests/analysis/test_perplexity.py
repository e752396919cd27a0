"""Perplexities and interpolations: against scalar computations, weights where the answer is known, the tables."""

import math

import numpy as np
import pytest

from moses_rnn.analysis import perplexity as perplexity_module
from moses_rnn.analysis.perplexity import (
    Contender,
    Scored,
    best_weights,
    interpolations,
    perplexity,
    score_text,
)
from moses_rnn.errors import InputError, ScoreError
from moses_rnn.models.language_models import LanguageModel
from tests.models.tiny_lm import SENTENCES, checkpoint

TEXT = [sentence.encode() + b"\n" for sentence in SENTENCES if sentence]


def scored(*probabilities):
    """Of models, from what each gives to words."""
    log_probs = np.log(np.array(probabilities))
    return Scored("dev.fr", log_probs, np.zeros(log_probs.shape[1], np.bool_))


def mean_cost(text, weights):
    """Minus the mean log-probability of the mixture, one number at a time."""
    words = np.exp(text.log_probs).T.tolist()
    return -sum(math.log(sum(w * p for w, p in zip(weights, word, strict=True))) for word in words) / len(words)


def test_a_perplexity_that_no_float_holds_is_refused():
    with pytest.raises(ScoreError, match=r"^text: expected a perplexity that a float can hold, found exp\(1e\+30\)"):
        perplexity(np.array([-1e30, -1e30]), "text")


# the best weights of Π_i Σ_m w_m p_m(i)
WEIGHTS = {
    "even": (([0.5, 0.1], [0.1, 0.5]), [0.5, 0.5]),
    # of Π (w a + (1 - w) b) the derivative is 0: 2 · 0.4 / (0.1 + 0.4 w) = 0.4 / (0.5 - 0.4 w)  ⇒  w = 0.9 / 1.2
    "two to one": (([0.5, 0.5, 0.1], [0.1, 0.1, 0.5]), [0.75, 0.25]),
    "one alone": (([0.5, 0.2], [0.25, 0.1]), [1, 0]),
    "the other alone": (([0.25, 0.1], [0.5, 0.2]), [0, 1]),
    # each model is right on a share of the words, and the others have nothing for them: the shares are the weights
    "three": (([0.5, 0.5, 1e-12, 1e-12], [1e-12, 1e-12, 0.25, 1e-12], [1e-12] * 3 + [0.7]), [0.5, 0.25, 0.25]),
    "a single one": (([0.5, 0.2],), [1]),
}


@pytest.mark.parametrize(("probabilities", "expected"), WEIGHTS.values(), ids=WEIGHTS)
def test_the_best_weights(probabilities, expected):
    weights = best_weights(scored(*probabilities))
    assert sum(weights) == pytest.approx(1)
    assert weights == pytest.approx(expected, abs=1e-4)


def test_the_likelihood_is_within_a_millionth_of_the_highest():
    random = np.random.default_rng(3)
    text = scored(*random.dirichlet(np.ones(20), size=3))
    best = mean_cost(text, best_weights(text)) * 20
    steps = [(i / 40, j / 40, (40 - i - j) / 40) for i in range(41) for j in range(41 - i)]
    assert best <= min(mean_cost(text, weights) for weights in steps) * 20 + 1e-6


class Fixed(LanguageModel):
    """Gives every word the same probability, and knows all but one."""

    def __init__(self, p, unknown=b"odd"):
        self._p, self._unknown = p, unknown

    def word_log_probs(self, sentences):
        return np.full(sum(len(sentence.split()) + 1 for sentence in sentences), math.log(self._p))

    def unknown(self, sentences):
        return np.array([word == self._unknown for sentence in sentences for word in [*sentence.split(), b"</s>"]])


def contenders(*networks, n_grams=0):
    named = [
        Contender(f"{network}.{i}", Fixed(0.1 * (i + 1), (b"odd", b"chat")[i % 2]), network)
        for i, network in enumerate(networks)
    ]
    return [*named, *(Contender(f"lm{i}", Fixed(0.5, b"le"), None) for i in range(n_grams))]


def test_a_text_is_scored_by_all():
    models, observed = contenders("rnnlm", "bengio", n_grams=1), []
    text = score_text([b"le chat odd\n", b"\n", b" \r\n", b"le\r\n"], "dev.fr", models, observed.append)
    assert (text.log_probs.shape, observed) == ((3, 6), [2])
    assert np.exp(text.log_probs[:, 0]) == pytest.approx([0.1, 0.2, 0.5])
    assert text.outside.tolist() == [False, True, True, False, False, False]  # of either shortlist
    with pytest.raises(InputError, match=r"^dev\.fr: expected sentences, found none$"):
        score_text([b"\n"], "dev.fr", models)


def test_networks_of_one_kind_are_interpolated_together_too():
    models = contenders("rnnlm", "rnnlm", n_grams=1)
    rows = dict(interpolations(models, score_text([b"le chat"], "dev.fr", models)))
    assert rows["the 2 networks, equal weights"].tolist() == [0.5, 0.5, 0]
    assert rows["0.75 rnnlm.1, 0.25 lm0"].tolist() == [0, 0.75, 0.25]
    assert rows["0.75 the 2 networks, equal weights, 0.25 lm0"].tolist() == [0.375, 0.375, 0.25]


CSLM = Contender("cslm", checkpoint().make_language_model(), "cslm")


@pytest.mark.parametrize("end", [b"", b"\r\n", b"\n\r\n \t\n"])
def test_line_ends_and_blanks_do_not_count(end):
    lines = [b"  " + line.replace(b" ", b" \t").replace(b"\n", end) for line in TEXT]
    lines = [part for line in lines for part in line.splitlines(keepends=True)]
    expected, found = (score_text(each, "dev", [CSLM]) for each in (TEXT, lines))
    assert np.array_equal(found.log_probs, expected.log_probs)
    assert len(found.outside) == sum(len(line.split(b" ")) + 1 for line in TEXT)  # words and ends


@pytest.mark.parametrize("together", [1, 4])
def test_how_many_are_scored_together_does_not_matter(monkeypatch, together):
    expected = score_text(TEXT, "dev", [CSLM])
    monkeypatch.setattr(perplexity_module, "SENTENCES", together)
    observed = []
    assert np.array_equal(score_text(TEXT, "dev", [CSLM], observed.append).log_probs, expected.log_probs)
    assert (max(observed), sum(observed)) == (min(together, len(TEXT)), len(TEXT))
