"""Tables as columns, for numpy, and for pandas and Arrow where these are installed."""

import sys
from types import SimpleNamespace

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


@pytest.mark.parametrize(
    ("library", "method", "made"), [("pandas", "to_pandas", "DataFrame"), ("pyarrow", "to_arrow", "table")]
)
def test_other_libraries_take_the_columns(scored, monkeypatch, library, method, made):
    monkeypatch.setitem(
        sys.modules, library, SimpleNamespace(**{made: lambda columns: [*columns, columns["target"][0]]})
    )
    table = moses_rnn.read_table(scored)
    assert getattr(table, method)() == [*table.columns, r"\xff"]
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(
        moses_rnn.MissingLibraryError, match=f"{method}: expected {library} to be installed, found none"
    ):
        getattr(table, method)()


def test_pandas_has_the_same(scored):
    pytest.importorskip("pandas")
    frame = moses_rnn.read_table(scored).to_pandas()
    assert list(frame["RNN"]) == [0.5, 0.125]
    assert list(frame["target"]) == [r"\xff", "c"]


def test_arrow_has_the_same(table, scored):
    pytest.importorskip("pyarrow")
    assert moses_rnn.read_table(scored).to_arrow()["target"].to_pylist() == [r"\xff", "c"]
    read = moses_rnn.read_table(table)
    assert read.to_arrow()["direct_phrase"].to_pylist() == read.to_columns()["direct_phrase"].tolist()
