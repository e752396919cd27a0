"""What is gathered for a report: of the recorded column, with the recorded floor, for a direct model."""

from dataclasses import replace

import pytest

from moses_rnn.analysis.report.findings import gather
from moses_rnn.errors import CheckpointError, InputError
from moses_rnn.producers.open import OpenModel
from tests.analysis.attentive import lstm
from tests.analysis.report.small import CONFIG, Producer
from tests.analysis.tiny import checkpoint


def test_an_inverse_model_is_refused(findings):
    inverse = OpenModel(None, checkpoint(direction="target-to-source"))
    with pytest.raises(InputError, match=r"expected a model of p\(target \| source\) to report on, found direction"):
        gather(findings.table, inverse, Producer(), {}, CONFIG, lambda *_: lambda *_: None)


def test_of_another_network_gates_and_disputes_are_not_known(findings, search_findings):
    assert findings.knows_gates
    assert not search_findings.knows_gates
    assert (search_findings.gates, search_findings.explained) == (None, ())
    assert set(search_findings.maps) == {"words", "phrases"}
    assert search_findings.maps["phrases"].labels == findings.maps["phrases"].labels
    assert search_findings.proposals


def test_a_network_with_attention_translates_the_first_lines(search_findings):
    one, two = search_findings.alignments  # a blank line and a long one are left out
    assert [(one.line, one.source), (two.line, two.source)] == [(1, [b"a", b"<b>", b"&apos;c"]), (4, [b"g"])]
    assert one.alpha.shape == (len(one.rows), 4)


def test_a_source_text_for_a_network_without_attention_is_refused(findings):
    config = replace(CONFIG, source_text="text")
    with pytest.raises(CheckpointError, match="m: expected a network with attention, found deep LSTM"):
        gather(findings.table, lstm("m"), Producer(), {}, config, lambda *_: lambda *_: None)
