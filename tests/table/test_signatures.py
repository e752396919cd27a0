import json
import os

import pytest

from moses_rnn.errors import InputError
from moses_rnn.table.phrase_table import DEFAULT_FLOOR
from moses_rnn.table.signatures import Signature, read_signature, signature_of
from tests.analysis.scored import sign

COLUMNS = [
    {"name": "RNN", "index": 4, "floor": -50.0},
    {"name": "RNN", "index": 5},
    {"name": "CSLM", "index": 9, "floor": "low"},
    {"index": 3},
    "none",
]
SIGNATURE = {"program": "moses_rnn 1", "added_columns": COLUMNS, "file": {"bytes": 4}}


@pytest.fixture
def table(tmp_path):
    (tmp_path / "t").write_bytes(b"four")
    (tmp_path / "t.json").write_text(json.dumps(SIGNATURE))
    return tmp_path / "t"


def test_it_is_read_beside_the_table_and_beside_what_a_link_leads_to(table):
    assert read_signature(str(table)).record == SIGNATURE
    link = table.with_name("link")
    link.symlink_to(table)
    assert read_signature(str(link)).record == SIGNATURE


@pytest.mark.parametrize(
    "text", ["", "[]", "{", "[" * 100_000, '{"program": "other 1"}', '{"program": 3}', " " * (1 << 20) + "{}"]
)
def test_anything_else_is_no_signature(table, text):
    table.with_name("t.json").write_text(text)
    assert not read_signature(str(table))
    assert not signature_of(str(table))


@pytest.mark.parametrize("value", [None, 3, "text", {"a": 1}, [], [1, "a", None]])
def test_records_that_are_not_there(value):
    signature = Signature({"added_columns": value, "earlier_columns": value, "models": value})
    assert signature.names == {}
    assert signature.models == ([{"a": 1}] if value == [{"a": 1}] else [])


def test_what_was_added(table):
    sign(table, {4: "RNN", 5: "CSLM"})
    assert signature_of(str(table)).names == {4: "RNN", 5: "CSLM"}
    table.write_bytes(b"size")  # the same
    with pytest.raises(InputError, match="t: expected 4 bytes, SHA-256 .* as in its signature, found 4 bytes"):
        signature_of(str(table))


@pytest.mark.parametrize("key", ["added_columns", "earlier_columns"])
def test_a_table_of_logarithms_is_refused(table, key):
    sign(table, {})
    record = read_signature(str(table)).record | {key: [{**COLUMNS[0], "written_as": "natural logarithm"}]}
    table.with_name("t.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match="t: expected probabilities in score 5, found logarithms"):
        signature_of(str(table))


def test_a_pipe_has_none(table):
    table.unlink()
    os.mkfifo(table)
    assert not signature_of(str(table))


@pytest.mark.parametrize(("column", "floor"), [(4, -50.0), (5, DEFAULT_FLOOR), (9, DEFAULT_FLOOR), (0, DEFAULT_FLOOR)])
def test_the_floor_of_a_column(column, floor):
    assert Signature(SIGNATURE).floor(column) == floor


def test_lines_that_were_added_are_said_and_what_was_counted_before_is_not():
    before = {
        **SIGNATURE,
        "added_columns": [{"name": "RNN", "index": 4, "unknown": 3, "floor": -50.0}],
        "extended": [{"top": 1}],
    }
    changes = {"output": "new", "file": {"bytes": 9}, "lines": 7, "columns": 5}
    made = json.loads(Signature(before).changed(changes, "extended", {"top": 2}).as_file())
    assert (made["program"], made["lines"], made["columns"], made["file"]) == ("moses_rnn 1", 7, 5, {"bytes": 9})
    assert made["extended"] == [{"top": 1}, {"top": 2}]
    (first,) = made["added_columns"]
    assert (first["name"], first["index"], first["floor"]) == ("RNN", 4, -50.0)
    assert "unknown" not in first


def test_a_table_without_a_signature_gets_one_when_lines_are_added():
    made = json.loads(Signature().changed({"lines": 7, "columns": 4}, "extended", {"top": 2}).as_file())
    assert made["program"].startswith("moses_rnn ")
    assert (made["added_columns"], made["extended"]) == ([], [{"top": 2}])
