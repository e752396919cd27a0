import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_rnn.errors import FormatError
from moses_rnn.formats.phrase_forms import words
from moses_rnn.formats.phrase_table import parse_line, parse_table

# line → source, target, line with the score X added
ACCEPTED = {
    "as train-model.perl writes it": (
        b'! &quot; ||| ! &quot; ||| 0.71 0.61 1 0.75 ||| 0-0 1-1 ||| 7 5 5 ||| |||\n',
        b"! &quot;", b"! &quot;",
        b'! &quot; ||| ! &quot; ||| 0.71 0.61 1 0.75 X ||| 0-0 1-1 ||| 7 5 5 ||| |||\n',
    ),
    "no alignment": (b"a ||| b ||| 1 ||| ||| 7 5 5 ||| |||\n", b"a", b"b", b"a ||| b ||| 1 X ||| ||| 7 5 5 ||| |||\n"),
    "three fields": (b"a b ||| c ||| 0.5 1e-05\n", b"a b", b"c", b"a b ||| c ||| 0.5 1e-05 X\n"),
    "three fields, blank end": (b"a ||| c ||| 0.5 \t\n", b"a", b"c", b"a ||| c ||| 0.5 X \t\n"),
    "no line end": (b"a ||| c ||| .5", b"a", b"c", b"a ||| c ||| .5 X"),
    "no blanks": (b"a|||c|||1|||0-0\n", b"a", b"c", b"a|||c|||1 X|||0-0\n"),
    "CRLF": (b"a ||| c ||| 1 2\r\n", b"a", b"c", b"a ||| c ||| 1 2 X\r\n"),
    "CRLF after more fields": (b"a ||| c ||| 1 ||| 0-0\r\n", b"a", b"c", b"a ||| c ||| 1 X ||| 0-0\r\n"),
    "tabs and double blanks": (b"a\tb  c ||| d ||| 1\t 2 |||\n", b"a\tb  c", b"d", b"a\tb  c ||| d ||| 1\t 2 X |||\n"),
    "empty source": (b" ||| c ||| 1\n", b"", b"c", b" ||| c ||| 1 X\n"),
    "empty target": (b"a ||| ||| 1\n", b"a", b"", b"a ||| ||| 1 X\n"),
    "sparse features and properties": (
        b"a ||| b ||| 1 ||| 0-0 ||| 1 1 1 ||| f -2.5 ||| {{Counts 1 ||| 2}}\n", b"a", b"b",
        b"a ||| b ||| 1 X ||| 0-0 ||| 1 1 1 ||| f -2.5 ||| {{Counts 1 ||| 2}}\n",
    ),
    "odd bytes inside words": (
        b"a\xc2\xa0b\xe2\x80\xa8 \xff\x00\r\x0b ||| \xc2\x85 ||| 1 |||\n", b"a\xc2\xa0b\xe2\x80\xa8 \xff\x00\r\x0b", b"\xc2\x85",
        b"a\xc2\xa0b\xe2\x80\xa8 \xff\x00\r\x0b ||| \xc2\x85 ||| 1 X |||\n",
    ),
    "a bracket and an empty side": (b"a] ||| ||| 0.5\n", b"a]", b"", b"a] ||| ||| 0.5 X\n"),
    "brackets of different words": (b"a [x ||| b x] ||| 1\n", b"a [x", b"b x]", b"a [x ||| b x] ||| 1 X\n"),
    "one bracket is a word": (b"[ ] ||| ] [ ||| 1\n", b"[ ]", b"] [", b"[ ] ||| ] [ ||| 1 X\n"),
    "the largest float32": (b"a ||| b ||| 3.4028235e+38 1e-400\n", b"a", b"b", b"a ||| b ||| 3.4028235e+38 1e-400 X\n"),
    "brackets inside a word": (b"a[1]b ||| ]c ||| 1\n", b"a[1]b", b"]c", b"a[1]b ||| ]c ||| 1 X\n"),
}  # fmt: skip
REFUSED = {
    "two fields": (b"la maison ||| house\n", r"t:7: expected at least 3 fields separated by '\|\|\|', found 2: 'la maison \|\|\| house'"),
    "blank": (b"\n", "t:7: expected a phrase pair, found a blank line"),
    "blanks": (b"  \t\r\n", "t:7: expected a phrase pair, found a blank line"),
    "no scores": (b"a ||| b ||| ||| 0-0\n", "t:7: expected scores in field 3, found none"),
    "word as score": (b"a ||| b ||| 0.5 0.1x |||\n", "t:7: expected a number as score 2 of 2, found '0.1x'"),
    "nan": (b"a ||| b ||| nan |||\n", "expected a number as score 1 of 1, found 'nan'"),
    "inf": (b"a ||| b ||| 1 inf\n", "expected a number as score 2 of 2, found 'inf'"),
    "underscore": (b"a ||| b ||| 1_000\n", "expected a number as score 1 of 1, found '1_000'"),
    "hexadecimal": (b"a ||| b ||| 0x1p3\n", "expected a number as score 1 of 1, found '0x1p3'"),
    "other digits": ("a ||| b ||| ١\n".encode(), "expected a number as score 1 of 1, found"),
    "factors": (b"maison|N ||| house ||| 1\n", r"t:7: expected source words without factors, found 'maison\|N'\n  If these are factors, --source-factor says"),
    "target factors": (b"maison ||| house|N ||| 1\n", "expected target words without factors"),
    "hierarchical": (b"le [X][X] [X] ||| the [X][X] [X] ||| 1\n", r"expected words without brackets, found 'le \[X\]\[X\] \[X\]'"),
    "a bracketed word inside": (b"a ||| b [x] c ||| 1\n", r"expected words without brackets, found 'b \[x\] c'"),
    "rule of Hiero": (b"[X] ||| le [X,1] ||| the [X,1] ||| 1\n", "expected source \\|\\|\\| target .*\n  Rules that begin with their left-hand side are those of Hiero"),
    "CR inside": (b"a ||| b ||| 0.5\r ||| 0-0\n", r"expected a number as score 1 of 1, found '0.5\\r'"),
    "only CR": (b"a ||| b ||| \r\n", "expected scores in field 3, found none"),
    "too large for a float32": (b"a ||| b ||| 1 3.5e38\n", "expected a finite number as score 2, found '3.5e38'"),
    "too large for a double": (b"a ||| b ||| -1e400\n", "expected a finite number as score 1, found '-1e400'"),
    "large without exponent": (b"a ||| b ||| " + b"9" * 39 + b"\n", "expected a finite number as score 1, found '999"),
    "decimal comma": (b"a ||| b ||| 0,5\n", "found '0,5'\n  Written under a locale with decimal commas?"),
}  # fmt: skip


@pytest.mark.parametrize("case", ACCEPTED.values(), ids=ACCEPTED)
def test_accepts(case):
    line, source, target, with_score = case
    parsed = parse_line(line, "t", 7)
    assert (parsed.source, parsed.target) == (source, target)
    assert parsed.with_scores(b"X") == with_score
    assert (line[slice(*parsed.places[:2])], line[slice(*parsed.places[2:4])]) == (source, target)


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_refuses(case):
    line, message = case
    with pytest.raises(FormatError, match=message):
        parse_line(line, "t", 7)


def test_every_line_has_as_many_scores_as_the_first():
    lines = [b"a ||| b ||| 1 2 3\n", b"a ||| b ||| 1 2 3\n", b"a ||| b ||| 1 2\n"]
    with pytest.raises(FormatError, match="t:3: expected 3 scores as on line 1, found 2: '1 2'"):
        list(parse_table(lines, "t"))


def test_lines_that_are_none_can_be_told_of_instead():
    told = []
    lines = [b"a ||| b\n", b"a ||| b ||| 1 2\n", b"a ||| b ||| 1\n", b"\n", b"c ||| d ||| 3 4"]
    parsed = list(parse_table(lines, "t", lambda line, error: told.append((line, str(error)))))
    assert [(line.number, line.line) for line in parsed] == [(2, lines[1]), (5, lines[4])]
    assert [line for line, _ in told] == [lines[0], lines[2], lines[3]]
    assert told[1][1].startswith("t:3: expected 2 scores as on line 2, found 1: '1'")


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


PHRASE = st.lists(st.binary(min_size=1, max_size=4).filter(lambda w: not set(b" \t\n|]") & set(w)), max_size=4).map(
    b" ".join
)
SCORES = st.lists(st.floats(0, 3).map(lambda x: b"%.6g" % x), min_size=1, max_size=5).map(b" ".join)
REST = st.sampled_from([b"", b" ||| 0-0", b" ||| ||| 1 1 1 ||| |||", b"|||", b" \t", b" ||| \xff"])


@given(PHRASE, PHRASE, SCORES, REST, st.sampled_from([b"", b"\n", b"\r\n"]))
def test_dropping_the_new_column_gives_the_line_back(source, target, scores, rest, end):
    line = b" ||| ".join((source, target, scores)) + rest + end
    parsed = parse_line(line, "t", 1)
    assert [words(parsed.source), words(parsed.target), words(parsed.scores)] == slow_parse(line)
    scored = parsed.with_scores(b"0.25")
    again = parse_line(scored, "t", 1)
    assert words(again.scores) == [*words(parsed.scores), b"0.25"]
    assert scored[: again.places.scores_end - len(b" 0.25")] + scored[again.places.scores_end :] == line


PIECES = [
    "a",
    "[",
    "]",
    " ",
    "\t",
    "\r",
    "\n",
    "|",
    " ||| ",
    "|||",
    "0",
    ".5",
    "1e5",
    "e-3",
    "9e99",
    "-",
    "+",
    "\u00a0",
    "0.5 1",
]


@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join), st.sampled_from(["", "a ||| b ||| 1", "a|||b|||"]))
def test_accepts_what_the_slow_parser_accepts(text, begin):
    line = (begin + text).encode().replace(b"\n", b"") + b"\n"
    try:
        parsed = parse_line(line, "t", 1)
    except FormatError:
        assert slow_parse(line) is None
        return
    assert [words(parsed.source), words(parsed.target), words(parsed.scores)] == slow_parse(line)


@given(st.binary(max_size=60))
def test_any_bytes_are_parsed_or_refused(data):
    try:
        parsed = parse_line(data, "t", 1)
    except FormatError:
        return
    assert parsed.line == data
