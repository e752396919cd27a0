"""How long scoring will take, by the first lines of a table."""

import pytest

from moses_rnn.errors import InputError
from moses_rnn.score.estimate import estimate
from moses_rnn.table.table_blocks import chunks_between_sources
from tests.score.tables import LINES, names, options_for


def test_of_a_large_table_some_blocks_are_enough(here, models, monkeypatch):
    monkeypatch.setattr(
        "moses_rnn.score.input_table.chunks_between_sources", lambda lines: chunks_between_sources(lines, 500)
    )
    (here / "table").write_bytes(b"".join(LINES) * 2000)
    lines, rate, _ = estimate(options_for(here, models, threads=2), seconds=0)
    assert lines == pytest.approx(60_000, rel=0.05)
    assert rate > 0


def test_bad_lines_are_left_out_if_they_may_be(here, models):
    (here / "table").write_bytes(LINES[0] + b"bad\n" + LINES[1])
    with pytest.raises(InputError, match="table:2: expected at least 3 fields"):
        estimate(options_for(here, models))
    assert estimate(options_for(here, models, on_bad_line="skip"))[0] == 2
    assert names(here) == ["table"]
