"""Rejected lines come out with the chunk of good lines behind them, each once, also in a run that is resumed."""

import pytest

from moses_rnn.errors import FormatError
from moses_rnn.score import input_table
from moses_rnn.score.input_table import Rejects

BAD = {1: b"first\n", 5: b"five\n", 20: b"twenty\n", 21: b"twenty-one\n", 35: b"no line end"}
ENDS = (10, 20, 30, 35)  # the last lines of the table's chunks
CHUNKS = [[b"first\n", b"five\n"], [b"twenty\n"], [b"twenty-one\n"], [b"no line end\n"]]


def take(rejects, line, content=b"bad\n"):
    rejects.take(content, FormatError("t", line, "a pair", "none"))


@pytest.mark.parametrize("done", range(5))
def test_resumed_behind_any_chunk_each_comes_once(done):
    rejects = Rejects()
    take(rejects, 1, BAD[1])
    rejects.until(0 if done == 0 else ENDS[done - 1])
    for line, content in BAD.items():
        if line > 1:
            take(rejects, line, content)
    assert [rejects.until(end) for end in ENDS[done:]] == CHUNKS[done:]
    assert rejects.last == (35 if done < 4 else 1)
    assert rejects.messages[0] == "t:1: expected a pair, found none"


@pytest.mark.parametrize(
    ("limit", "most", "lines", "message"),
    [
        ("MOST_IN_A_ROW", 3, (7, 8, 9, 10), "t:10: .*, found 4 bad lines in a row"),
        ("MOST_BYTES_IN_A_ROW", 11, (4, 5, 6), "t:6: .*, found consecutive bad lines of 12 bytes"),
    ],
)
def test_too_many_of_them_are_no_table(monkeypatch, limit, most, lines, message):
    monkeypatch.setattr(input_table, limit, most)
    rejects = Rejects()
    for line in lines[:-1]:
        take(rejects, line)
    with pytest.raises(FormatError, match=f"^{message}\n  Is this a phrase table"):
        take(rejects, lines[-1])


def test_bad_lines_between_good_ones_are_skipped_however_far_a_run_reads_ahead(monkeypatch):
    monkeypatch.setattr(input_table, "MOST_BYTES_IN_A_ROW", 11)
    rejects = Rejects()
    for line in range(2, 40, 2):
        take(rejects, line)
    assert rejects.until(40) == [b"bad\n"] * 19
