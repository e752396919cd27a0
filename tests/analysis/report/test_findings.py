"""What is gathered for a report: of the recorded column, with the recorded floor, for a direct model."""

from moses_rnn.formats.signatures import recorded_column, recorded_floor, recorded_names


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


def test_the_column_is_the_recorded_one():
    columns = [{"name": "RNN", "index": 4}, {"name": "RNNInverse", "index": 5}, {"name": "RNN", "index": "odd"}]
    assert recorded_column({"added_columns": columns}, "RNN", 6) == 4
    assert recorded_column({"added_columns": columns}, "RNN", 4) is None  # the table has no such score
    assert recorded_column({"added_columns": "odd"}, "RNN", 6) is None
    assert recorded_names({"added_columns": columns}) == ["RNN", "RNNInverse", "RNN"]


def test_the_floor_is_the_recorded_one():
    columns = [{"index": 4, "floor": -20}, {"index": 5, "floor": None}, "odd"]
    assert [recorded_floor({"added_columns": columns}, column) for column in (4, 5, 6)] == [-20, -87, -87]
