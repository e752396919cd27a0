import numpy as np
import pytest

import moses_rnn
from tests.analysis.scored import sign

NAMES = ("inverse_phrase", "inverse_lexical", "direct_phrase", "direct_lexical")
COUNTS = ("target_count", "source_count", "pair_count")


@pytest.fixture
def scored(tmp_path):
    """Two lines with a score that the signature names, and one whose name is there already."""
    path = tmp_path / "t"
    path.write_bytes(b"a ||| \xff ||| 1 1 1 1 0.5 0.25 ||| 0-0 ||| 4 2 1\nb ||| c ||| 1 1 1 1 0.125 1 ||| \n")
    sign(path, {4: "RNN", 5: "RNN"})
    return path


def test_rows_are_lines(scored):
    first, second = moses_rnn.read_table(scored)
    assert first == ("a", "\udcff", (1, 1, 1, 1, 0.5, 0.25), "0-0", (4, 2, 1))
    assert (second.alignment, second.counts) == ("", (0, 0, 0))


def test_columns_have_names(scored):
    table = moses_rnn.read_table(str(scored))
    assert table.columns == ("source", "target", "alignment", *NAMES, "RNN", "RNN_2", *COUNTS)
    assert repr(table) == f"<moses_rnn.Table '{scored}': {', '.join(table.columns)}>"
    columns = table.to_columns()
    assert tuple(columns) == table.columns
    assert columns["RNN"].tolist() == [0.5, 0.125]
    assert columns["RNN"].dtype == np.float64
    assert columns["source"] == ["a", "b"]


def test_batches_are_the_table_in_parts(table):
    read = moses_rnn.read_table(table)
    batches = list(read.batches(1000))
    assert [len(batch["source"]) for batch in batches][:2] == [1000, 1000]
    whole = read.to_columns()
    assert np.concatenate([batch["direct_phrase"] for batch in batches]).tolist() == whole["direct_phrase"].tolist()
