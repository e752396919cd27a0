"""Rejected lines come out with the block of good lines behind them, each once, also in a run that is resumed."""

import pytest

from moses_rnn.errors import FormatError
from moses_rnn.scoring import rejects as rejecting
from moses_rnn.scoring.rejects import Rejects

BAD = {1: b"first\n", 5: b"five\n", 20: b"twenty\n", 21: b"twenty-one\n", 35: b"no line end"}
ENDS = (10, 20, 30, None)  # the last lines of the table's blocks
BLOCKS = [b"first\nfive\n", b"twenty\n", b"twenty-one\n", b"no line end\n"]


def take(rejects, line, content=b"bad\n"):
    rejects.take(content, FormatError("t", line, "a pair", "none"))


def blocks_of(rejects, saved):
    """Take all lines, as every run does, some of them before it knows what was saved; the blocks and counts."""
    blocks = []
    take(rejects, 1, BAD[1])
    rejects.restore(saved)
    for line, content in BAD.items():
        if line > 1:
            take(rejects, line, content)
    for end in ENDS:
        if end is None or end > rejects.until:
            blocks.append((rejects.rejected_until(end), rejects.counts()))
    return blocks


def test_each_has_its_block_and_its_line_end():
    rejects = Rejects()
    assert [block for block, _ in blocks_of(rejects, {})] == BLOCKS
    assert (rejects.lines, rejects.until) == (5, 35)
    assert rejects.messages == [f"t:{line}: expected a pair, found none" for line in (1, 5, 20)]


@pytest.mark.parametrize("done", range(1, 5))
def test_resumed_behind_any_block_it_ends_the_same(done):
    whole = blocks_of(Rejects(), {})
    rejects = Rejects()
    assert [block for block, _ in blocks_of(rejects, whole[done - 1][1])][: 4 - done] == BLOCKS[done:]
    assert rejects.lines == 5


@pytest.mark.parametrize(
    ("limit", "most", "lines", "message"),
    [
        ("MOST_IN_A_ROW", 3, (7, 8, 9, 10), "t:10: .*, found 4 bad lines in a row"),
        ("MOST_WAITING_BYTES", 11, (2, 4, 6), "t:6: .*, found bad lines of 12 bytes one after the other"),
    ],
)
def test_too_many_of_them_are_no_table(monkeypatch, limit, most, lines, message):
    monkeypatch.setattr(rejecting, limit, most)
    rejects = Rejects()
    for line in lines[:-1]:
        take(rejects, line)
    with pytest.raises(FormatError, match=f"^{message}\n  Is this a phrase table"):
        take(rejects, lines[-1])


def test_what_was_given_out_waits_no_longer(monkeypatch):
    monkeypatch.setattr(rejecting, "MOST_WAITING_BYTES", 11)
    rejects = Rejects()
    for line in range(2, 40, 2):
        take(rejects, line)
        assert rejects.rejected_until(line) == b"bad\n"
