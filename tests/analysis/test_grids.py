import csv
import io
import json
import sys

import pytest

from moses_rnn.analysis.grids import Grid, as_csv, as_json_lines, as_markdown, as_text, as_tsv, readable

GRID = Grid("Figures", ("name", "n", "share"), [(b"a|b", 1234, 0.123456789012), (b"c", None, 1.0)])


def test_what_is_wider_than_a_terminal_comes_in_parts(monkeypatch):
    header = ("name", *(f"column {i}" for i in range(12)))
    grid = Grid("Figures", header, [(b"a", *range(12)), (b"b", *range(12))])
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    lines = as_text(grid).split("\n")
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines if line] == ["Figures", "name", "a", "b", "name", "a", "b"]
    assert " ".join(lines[1].split()[1:] + lines[5].split()[1:]) == " ".join(header[1:])
    assert as_text(Grid("", ("n" * 99, "m"), [(1, 2)])).split("\n")[0] == f"  {'n' * 99}  m"  # what cannot be parted


def test_csv_tsv_and_json_have_everything_as_it_is():
    phrases = [b'say "a, b"', b"a\xc2\xa0b", b"\xff", b"a\rb", b"\xe2\x80\xa8"]
    text = as_csv(Grid("T", ("phrase", "p"), [(phrase, 0.123456789012) for phrase in phrases]))
    _, *rows = csv.reader(io.StringIO(text, newline=""))
    assert [row[0].encode("utf-8", "surrogateescape") for row in rows] == phrases
    assert as_csv(GRID) == "name,n,share\na|b,1234,0.123456789\nc,,1"
    assert as_tsv(Grid("T", ("a", "b"), [(b"x\ty\r", "c\\d\ne")])).split("\n")[1] == r"x\ty\r" + "\t" + r"c\\d\ne"
    odd = Grid("", ("a", "b", "c"), [(b"caf\xc3\xa9 \xff", float("nan"), None)])
    assert json.loads(as_json_lines(odd)) == {"a": "café \\xff", "b": None, "c": None}


def test_groups_are_named_once_where_people_read():
    grid = Grid("", ("g", "h", "x"), [("a", 1, "x"), ("a", 1, "x"), ("a", 2, "x"), ("b", 2, "x")], group_columns=2)
    assert as_markdown(grid).split("\n")[2:] == ["| a | 1 | x |", "|  |  | x |", "| a | 2 | x |", "| b | 2 | x |"]
    assert as_csv(grid).split("\n")[2] == "a,1,x"


@pytest.mark.parametrize(
    ("phrase", "expected"),
    [
        (b"a\xc2\xa0b", "a\\xa0b"),
        (b"\x1b[31m", "\\x1b[31m"),
        (b"\xff<", "\\xff<"),
        ("\u202eabc".encode(), "\\u202eabc"),
        ("a\n\udce9", "a\\n\\xe9"),  # a file's name
    ],
)
def test_phrases_as_they_can_be_shown(phrase, expected):
    assert readable(phrase) == expected


def test_markup_is_text_in_markdown():
    (shown,) = as_markdown(Grid("", ("h",), [("a|b &apos; $ # _ {} *b* <b> [X] a\\xa0 ~ ^ `",)])).split("\n")[2:]
    assert as_markdown(Grid("", ("a\nb",), [("c\nd",)])).splitlines()[::2] == [r"| a\\nb |", r"| c\\nd |"]
    assert shown == r"| a\|b \&apos; \$ \# \_ {} \*b\* \<b\> \[X\] a\\xa0 \~ ^ \` |"
