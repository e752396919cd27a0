import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_rnn.errors import FormatError
from moses_rnn.table.phrase_table import parse_line, parse_table
from moses_rnn.table.phrases import words
from tests.table.line_cases import ACCEPTED, REFUSED, with_scores


@pytest.mark.parametrize("case", ACCEPTED.values(), ids=ACCEPTED)
def test_accepts(case):
    line, source, target, with_score = case
    parsed = parse_line(line, "t", 7)
    assert (parsed.source, parsed.target) == (source, target)
    assert with_scores(parsed, b"X") == with_score
    assert (line[slice(*parsed.spans[:2])], line[slice(*parsed.spans[2:4])]) == (source, target)


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_refuses(case):
    line, message = case
    with pytest.raises(FormatError, match=message):
        parse_line(line, "t", 7)


def test_every_line_has_as_many_scores_as_the_first():
    lines = [b"a ||| b ||| 1 2 3\n", b"a ||| b ||| 1 2 3\n", b"a ||| b ||| 1 2\n"]
    with pytest.raises(FormatError, match="t:3: expected 3 scores as on line 1, found 2: '1 2'"):
        list(parse_table(lines, "t"))


def test_invalid_lines_can_be_left_out_instead():
    rejected = []
    lines = [b"a ||| b\n", b"a ||| b ||| 1 2\n", b"a ||| b ||| 1\n", b"\n", b"c ||| d ||| 3 4"]
    parsed = list(parse_table(lines, "t", lambda line, error: rejected.append((line, str(error)))))
    assert [(line.number, line.line) for line in parsed] == [(2, lines[1]), (5, lines[4])]
    assert [line for line, _ in rejected] == [lines[0], lines[2], lines[3]]
    assert rejected[1][1].startswith("t:3: expected 2 scores as on line 2, found 1: '1'")


@pytest.mark.parametrize(
    ("phrase", "expected"),
    [
        (b"", []),
        (b"a", [b"a"]),
        (b" a  b\tc ", [b"a", b"b", b"c"]),
        (b"a\xc2\xa0b \xe2\x80\xa8", [b"a\xc2\xa0b", b"\xe2\x80\xa8"]),
    ],
)
def test_words_are_split_as_moses_splits_them(phrase, expected):
    assert words(phrase) == expected


def slow_parse(line):
    """The same by plain searching, as LoaderStandard.cpp goes about it; None for what is refused."""
    line = line.removesuffix(b"\n").removesuffix(b"\r")
    fields = line.split(b"|||")
    if len(fields) < 3 or any(b"|" in field for field in fields[:2]):
        return None
    split = [[w for w in field.replace(b"\t", b" ").split(b" ") if w] for field in fields[:3]]
    if not split[2] or any(w != b"[" and w[0] == 91 and w[-1] == 93 for w in split[0] + split[1]):
        return None
    return split if all(is_number(score) for score in split[2]) else None


def is_number(text):
    if set(text) - set(b"0123456789+-.eE"):
        return False
    try:
        return abs(float(text)) < 3.4028236e38
    except ValueError:
        return False


PIECES = [*"a[] \t\r\n|0-+\u00a0", " ||| ", "|||", ".5", "1e5", "e-3", "9e99", "0.5 1"]


@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join), st.sampled_from(["", "a ||| b ||| 1", "a|||b|||"]))
def test_dropping_the_new_column_gives_the_line_back(text, begin):
    line = (begin + text).encode().replace(b"\n", b"") + b"\n"
    try:
        parsed = parse_line(line, "t", 1)
    except FormatError:
        assert slow_parse(line) is None
        return
    assert [words(parsed.source), words(parsed.target), words(parsed.scores)] == slow_parse(line)
    assert parsed.alignment == [*line.split(b"|||"), b""][3].strip(b" \t\r\n")
    scored = with_scores(parsed, b"0.25")
    again = parse_line(scored, "t", 1)
    assert words(again.scores) == [*words(parsed.scores), b"0.25"]
    assert scored[: again.spans.scores_end - len(b" 0.25")] + scored[again.spans.scores_end :] == line
