"""Names of what commands write; the options are tested with the commands that have them."""

from pathlib import Path

import pytest

from moses_rnn.cli.table_options import default_model, default_output


@pytest.mark.parametrize(
    ("table", "model", "output"),
    [
        ("phrase-table.gz", "phrase-table.rnn-model", "phrase-table.rnn.gz"),
        ("/a.b/table", "/a.b/table.rnn-model", "/a.b/table.rnn.gz"),
        ("t.zst", "t.rnn-model", "t.rnn.gz"),
    ],
)
def test_names(table, model, output):
    assert default_model(table) == Path(model)
    assert default_output(table) == output


def test_an_inverse_model_has_a_name_of_its_own():
    assert default_model("t.gz", inverse=True) != default_model("t.gz")
