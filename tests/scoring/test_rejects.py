"""Rejected lines stand in blocks beside those of the table, so that both can be resumed together."""

import pytest

from moses_rnn.errors import FormatError
from moses_rnn.files.journal import BlockOutput, Opening
from moses_rnn.scoring import rejects as rejecting
from moses_rnn.scoring.rejects import NoRejects, Rejects
from tests.scoring.tables import names

MANIFEST = {"input": "t"}
BAD = {1: b"first\n", 5: b"five\n", 20: b"twenty\n", 21: b"twenty-one\n", 35: b"no line end"}
ENDS = (10, 20, 30)  # the last lines of the table's blocks
WHOLE = b"".join(BAD.values()) + b"\n"


class Death(BaseException):
    """What no part of the program catches."""


def error_at(line):
    return FormatError("t", line, "a pair", "none")


def rejects_at(path, **opening):
    return Rejects(BlockOutput(str(path), opening=Opening(**opening)))


def take_until(rejects, first, last):
    for line, content in BAD.items():
        if first < line <= last:
            rejects.take(content, error_at(line))


def run(path, *, die_after=None, table_blocks=0, **opening):
    """Take all lines from the first one on, as every run does, and write a block beside each of the table's."""
    with rejects_at(path, **opening) as rejects:
        take_until(rejects, 0, 3)  # while the first sound line is looked for
        rejects.begin(MANIFEST, table_blocks)
        before = 3
        for number, end in enumerate(ENDS):
            take_until(rejects, before, end + 2)  # some lines are read ahead
            before = end + 2
            if number >= table_blocks:
                rejects.write(end)
                if number + 1 == die_after:
                    raise Death
        take_until(rejects, before, 99)
        rejects.write()
        if die_after == "the end":
            raise Death
        rejects.commit()
        return rejects


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rejects"


def test_all_of_them_are_kept_in_order_each_with_its_line_end(path):
    rejects = run(path)
    assert (path.read_bytes(), rejects.lines) == (WHOLE, 5)
    assert names(path.parent) == ["rejects"]
    assert rejects.messages == [f"t:{line}: expected a pair, found none" for line in (1, 5, 20)]


@pytest.mark.parametrize("blocks", [1, 2, 3])
def test_resumed_beside_as_many_blocks_it_ends_the_same(path, blocks):
    with pytest.raises(Death):
        run(path, die_after=blocks)
    assert run(path, resume=True, table_blocks=blocks).lines == 5
    assert path.read_bytes() == WHOLE


def test_a_block_that_the_table_has_not_is_written_again(path):
    with pytest.raises(Death):
        run(path, die_after=3)
    assert run(path, resume=True, table_blocks=2).lines == 5
    assert path.read_bytes() == WHOLE


def test_a_death_before_the_name_was_given_costs_nothing(path):
    with pytest.raises(Death):
        run(path, die_after="the end")
    assert run(path, resume=True, table_blocks=3).lines == 5
    assert path.read_bytes() == WHOLE


def test_a_block_may_have_none_of_them(path):
    with rejects_at(path) as rejects:
        rejects.begin(MANIFEST, 0)
        for line in (10, 20):
            rejects.write(line)
        rejects.take(b"bad\n", error_at(21))
        rejects.write()
        rejects.commit()
    assert path.read_bytes() == b"bad\n"


def test_beside_a_finished_table_finished_rejects_are_counted_and_left_alone(path):
    run(path)
    with rejects_at(path, resume=True) as rejects:
        take_until(rejects, 0, 99)
        rejects.begin(MANIFEST, None)
        take_until(rejects, 0, 99)
        rejects.write()
        assert rejects.lines == 5
        rejects.commit()
    assert (path.read_bytes(), names(path.parent)) == (WHOLE, ["rejects"])


def test_where_nothing_is_rejected_those_of_an_older_table_go(path):
    path.write_bytes(b"old\n")
    with rejects_at(path, force=True) as rejects:
        rejects.begin(MANIFEST, 0)
        rejects.write(10)
        rejects.write()
        assert path.read_bytes() == b"old\n"
        rejects.commit()
    assert names(path.parent) == []


@pytest.mark.parametrize(
    ("limit", "most", "lines", "message"),
    [
        ("MOST_IN_A_ROW", 3, (7, 8, 9, 10), "t:10: .*, found 4 bad lines in a row"),
        ("MOST_WAITING_BYTES", 11, (2, 4, 6), "t:6: .*, found bad lines of 12 bytes one after the other"),
    ],
)
def test_too_many_of_them_are_no_table(path, monkeypatch, limit, most, lines, message):
    monkeypatch.setattr(rejecting, limit, most)
    with rejects_at(path) as rejects:
        rejects.begin(MANIFEST, 0)
        for line in lines[:-1]:
            rejects.take(b"bad\n", error_at(line))
        with pytest.raises(FormatError, match=f"^{message}\n  Is this a phrase table"):
            rejects.take(b"bad\n", error_at(lines[-1]))


def test_written_lines_wait_no_longer(path, monkeypatch):
    monkeypatch.setattr(rejecting, "MOST_WAITING_BYTES", 11)
    with rejects_at(path) as rejects:
        rejects.begin(MANIFEST, 0)
        for line in range(2, 40, 2):
            rejects.take(b"bad\n", error_at(line))
            rejects.write(line)
        rejects.commit()
    assert path.read_bytes() == b"bad\n" * 19


def test_a_run_without_rejects_removes_what_another_left_of_its_own(path):
    with pytest.raises(Death):
        run(path, die_after=1)
    NoRejects(None).commit()
    assert names(path.parent) == [".rejects.journal", ".rejects.part"]
    NoRejects(str(path)).commit()
    assert names(path.parent) == []
