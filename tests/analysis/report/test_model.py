"""Sections of the network itself, and which of them were left out."""

import pytest

from moses_rnn.analysis.report.model import explained, gates, samples
from moses_rnn.translation.proposals import Proposal, Proposals


@pytest.mark.parametrize(
    ("section", "text"),
    [
        (samples([], 5), "None."),
        (gates(None), "There are no phrases."),
        (explained([]), "There are no such pairs."),
    ],
    ids=["samples", "gates", "explained"],
)
def test_what_was_not_looked_at_is_named(section, text):
    assert "".join(section.body) == f"<p>{text}</p>"


def test_samples_stand_under_their_source_the_best_first():
    best = [Proposal(b"u &apos;", -0.004, 3, True), Proposal(b"", -9.0, 1, False)]
    text = "".join(samples([Proposals(b"a <b>", best, 1, [b"zzz"], False)], 5).body)
    assert "<bdi>a &lt;b&gt;</bdi>" in text
    assert text.index("<bdi>u &#x27;</bdi>") < text.index("(nothing)")
    assert "-9.00" in text
    assert "-0.00" not in text
    assert "5 samples, 1 without an end, 2 distinct, 25.0% (50.0% of the distinct) not in the table." in text
    assert "Words of these sources that the network reads as &lt;unk&gt;: <bdi>zzz</bdi>" in text
