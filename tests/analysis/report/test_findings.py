"""What is gathered for a report: of the recorded column, with the recorded floor, for a direct model."""

import pytest

from moses_rnn.analysis.report.findings import gather
from moses_rnn.errors import InputError
from moses_rnn.formats.signatures import recorded_column, recorded_floor, recorded_names
from tests.analysis.report.small import CONFIG, Producer
from tests.analysis.tiny import checkpoint


def test_an_inverse_model_is_refused(findings):
    inverse = checkpoint(direction="target-to-source")
    with pytest.raises(InputError, match=r"expected a model of p\(target \| source\) to report on, found direction"):
        gather(findings.table, inverse, Producer(), {}, CONFIG, lambda *_: lambda *_: None)


def test_the_column_is_the_recorded_one():
    columns = [{"name": "RNN", "index": 4}, {"name": "RNNInverse", "index": 5}, {"name": "RNN", "index": "odd"}]
    assert recorded_column({"added_columns": columns}, "RNN", 6) == 4
    assert recorded_column({"added_columns": columns}, "RNN", 4) is None  # the table has no such score
    assert recorded_column({"added_columns": "odd"}, "RNN", 6) is None
    assert recorded_names({"added_columns": columns}) == ["RNN", "RNNInverse", "RNN"]


def test_the_floor_is_the_recorded_one():
    columns = [{"index": 4, "floor": -20}, {"index": 5, "floor": None}, "odd"]
    assert [recorded_floor({"added_columns": columns}, column) for column in (4, 5, 6)] == [-20, -87, -87]
