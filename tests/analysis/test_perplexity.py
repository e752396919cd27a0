"""Perplexities against a scalar computation; the interpolation's weight against all others."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_rnn.analysis import perplexity as perplexity_module
from moses_rnn.analysis.perplexity import Judged, as_markdown, best_weight, judge, perplexity
from moses_rnn.errors import InputError, ScoreError
from moses_rnn.formats.arpa import parse_arpa
from moses_rnn.producers.backoff import Backoff
from moses_rnn.producers.cslm import CslmProducer
from moses_rnn.producers.kenlm import KenlmProducer
from tests.producers.tiny_lm import NBSP, SENTENCES, SMALL, checkpoint

TEXT = [sentence.encode() + b"\n" for sentence in SENTENCES if sentence]


def judged(cslm, kenlm, outside=None, unknown=None, name="dev.fr"):
    """Judged from probabilities."""
    marks = [np.array(given or [False] * len(cslm), bool) for given in (outside, unknown)]
    return Judged(name, np.log(cslm), None if kenlm is None else np.log(kenlm), *marks)


def mean_cost(text, weight):
    """Minus the mean log-probability of the mixture, one number at a time."""
    mixed = [weight * math.exp(a) + (1 - weight) * math.exp(b) for a, b in zip(text.cslm, text.kenlm, strict=True)]
    return -sum(map(math.log, mixed)) / len(mixed)


PERPLEXITIES = [
    ([1 / 4], 4),
    ([1 / 2, 1 / 8], 4),  # (2 · 8)^½
    ([1, 1, 1 / 27], 3),
    ([1e-90, 1e-100], 1e95),
]


@pytest.mark.parametrize(("probabilities", "expected"), PERPLEXITIES)
def test_perplexity_is_the_inverse_of_the_geometric_mean(probabilities, expected):
    assert perplexity(np.log(probabilities), "text") == pytest.approx(expected)
    assert math.prod(probabilities) ** (-1 / len(probabilities)) == pytest.approx(expected)


def test_a_perplexity_that_no_float_holds_is_refused():
    with pytest.raises(ScoreError, match=r"^text: expected a perplexity that a float can hold, found exp\(1e\+30\)"):
        perplexity(np.array([-1e30, -1e30]), "text")


def test_mixed_is_the_linear_interpolation():
    text = judged([0.5, 0.1, 1e-200], [0.1, 0.3, 0.5])
    assert text.mixed(0.25) == pytest.approx(np.log([0.25 * 0.5 + 0.75 * 0.1, 0.25 * 0.1 + 0.75 * 0.3, 0.75 * 0.5]))
    assert text.mixed(1).tolist() == text.cslm.tolist()
    assert text.mixed(0).tolist() == text.kenlm.tolist()


# the best weight w of Π (w a + (1 - w) b), where its derivative is 0 or the end of the range
WEIGHTS = {
    "even": ([0.5, 0.1], [0.1, 0.5], 0.5),
    # 2 · 0.4 / (0.1 + 0.4 w) = 0.4 / (0.5 - 0.4 w)  ⇒  w = 0.9 / 1.2
    "two to one": ([0.5, 0.5, 0.1], [0.1, 0.1, 0.5], 0.75),
    "the CSLM alone": ([0.5, 0.2], [0.25, 0.1], 1),
    "the n-gram model alone": ([0.25, 0.1], [0.5, 0.2], 0),
    "alone by a hair": ([0.5, 0.2 * (1 + 1e-5)], [0.5, 0.2], 1),
    "alone by a hair, the other": ([0.5, 0.2], [0.5, 0.2 * (1 + 1e-5)], 0),
    # the derivative at 1 is still 0.3 / 0.4 - 0.2 / 0.3 > 0, but only just
    "alone, but slowly": ([0.4, 0.3], [0.1, 0.5], 1),
    "equal": ([0.5, 0.2], [0.5, 0.2], 0),
}


@pytest.mark.parametrize(("cslm", "kenlm", "expected"), WEIGHTS.values(), ids=WEIGHTS)
def test_the_best_weight(cslm, kenlm, expected):
    assert best_weight(judged(cslm, kenlm)) == pytest.approx(expected, abs=1e-6)


PROBABILITIES = st.lists(st.tuples(*[st.floats(1e-12, 1)] * 2), min_size=1, max_size=12)


@given(PROBABILITIES)
def test_the_best_weight_is_never_worse_than_either_alone_or_any_other(pairs):
    text = judged(*map(list, zip(*pairs, strict=True)))
    best = mean_cost(text, best_weight(text))
    assert best <= min(mean_cost(text, i / 50) for i in range(51)) + 1e-9
    found = -text.mixed(best_weight(text)).mean()
    assert found <= -text.cslm.mean()
    assert found <= -text.kenlm.mean()


def test_a_report_without_an_n_gram_model():
    dev = judged([1 / 4, 1 / 4, 1 / 100], None, outside=[False, False, True])
    assert list(as_markdown([dev], None)) == [
        "| text | tokens | outside the shortlist | CSLM, shortlist only |",
        "|---|---|---|---|",
        "| dev.fr | 3 | 33.33% | 4.00 |",
    ]


def test_a_report_with_an_n_gram_model():
    dev = judged([1 / 2, 1 / 8], [1 / 10, 1 / 40], outside=[False, True], unknown=[False, True])
    test = judged([1 / 4] * 2000, [1 / 10] * 2000, name="test.fr")
    # at a weight of 3/4: p = 3/4 · 1/2 + 1/4 · 1/10 = 2/5 and a quarter of it; perplexity (5/2 · 10)^½ = 5
    # and 3/4 · 1/4 + 1/4 · 1/10 = 17/80
    assert list(as_markdown([dev, test], 0.75)) == [
        "| text | tokens | outside the shortlist | CSLM, shortlist only | CSLM | n-gram model | both (0.750 CSLM) | gain "
        "| both, known words only |",
        "|---|---|---|---|---|---|---|---|---|",
        "| dev.fr | 2 | 50.00% | 2.00 | 4.00 | 20.00 | 5.00 | 75.0% | 2.50 |",
        "| test.fr | 2,000 | 0.00% | 4.00 | 4.00 | 10.00 | 4.71 | 52.9% | 4.71 |",
    ]


def test_a_text_is_judged_by_a_cslm_alone():
    producer = CslmProducer(checkpoint())
    text = judge(TEXT, "dev.fr", producer, None)
    assert (text.name, text.kenlm) == ("dev.fr", None)
    assert text.cslm.tolist() == producer.word_log_probs([line.rstrip(b"\n") for line in TEXT]).tolist()
    assert text.outside.tolist() == producer.unknown([line.rstrip(b"\n") for line in TEXT]).tolist()
    assert not text.unknown.any()


LINES = {
    "CRLF": [line.replace(b"\n", b"\r\n") for line in TEXT],
    "no line ends": [line.rstrip(b"\n") for line in TEXT],
    "empty lines": [b"\n", *TEXT, b"\r\n", b" \t\n", b""],
    "blanks": [b"  " + line.replace(b" ", b" \t") for line in TEXT],
}


@pytest.mark.parametrize("lines", LINES.values(), ids=LINES)
def test_line_ends_and_empty_lines_do_not_count(lines):
    producer = CslmProducer(checkpoint())
    expected = judge(TEXT, "dev", producer, None)
    found = judge(lines, "dev", producer, None)
    assert (found.cslm.tolist(), found.outside.tolist()) == (expected.cslm.tolist(), expected.outside.tolist())
    assert len(found.cslm) == sum(len(line.split(b" ")) + 1 for line in TEXT)  # words and ends


@pytest.mark.parametrize("together", [1, 2, 4, 100])
def test_how_many_are_scored_together_does_not_matter(monkeypatch, together):
    producer = CslmProducer(checkpoint())
    expected = judge(TEXT, "dev", producer, None)
    monkeypatch.setattr(perplexity_module, "SENTENCES", together)
    observed = []
    assert judge(TEXT, "dev", producer, None, observed.append).cslm.tolist() == expected.cslm.tolist()
    assert (max(observed), sum(observed)) == (min(together, len(TEXT)), len(TEXT))


@pytest.mark.parametrize("lines", [[], [b"\n"], [b"\r\n", b" \t\n"]])
def test_a_text_without_sentences_is_refused(lines):
    with pytest.raises(InputError, match=r"^dev\.fr: expected sentences, found none$"):
        judge(lines, "dev.fr", CslmProducer(checkpoint()), None)


def test_both_models_on_a_text(tmp_path):
    pytest.importorskip("kenlm", reason="kenlm is not installed: pip install 'moses-rnn[lm]'")
    path = SMALL.write(tmp_path)
    kenlm = KenlmProducer(path)
    backoff = Backoff(parse_arpa(path.read_bytes().splitlines(), "lm"), kenlm, checkpoint().target_vocabulary, "lm")
    text = judge(TEXT, "dev.fr", CslmProducer(checkpoint(), backoff=backoff), kenlm)
    n_gram = [value for sentence in SENTENCES if sentence for value in SMALL.log_probs(sentence)]
    assert text.kenlm == pytest.approx(n_gram, abs=1e-5)
    words = [word for sentence in SENTENCES if sentence for word in [*sentence.split(" "), "</s>"]]
    assert text.outside.tolist() == [word in ("rare", NBSP, "jamais", "vu") for word in words]
    assert text.unknown.tolist() == [word in ("neuf", "jamais", "vu") for word in words]
    weight = best_weight(text)
    assert 0 < weight < 1
    line = list(as_markdown([text], weight))[2].split(" | ")
    costs = [mean_cost(text, share) for share in (1, 0, weight)]
    assert line[4:7] == [f"{math.exp(cost):.2f}" for cost in costs]
    assert line[1] == str(len(words))
