"""What is gathered for a report: of the recorded column, with the recorded floor, for a direct model."""


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
