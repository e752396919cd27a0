import json

import pytest

from moses_rnn.table.line_warnings import LineWarnings
from moses_rnn.table.phrase_table import parse_table
from moses_rnn.table.table_blocks import parse_blocks

CASES = {
    "nothing odd": ([b"a ||| b ||| 1 0.5 1e-5 10 2.718 0.0001 1e-30 |||\n"] * 2, []),
    "characters of every kind": (["à la\u00a0\u2028 ||| 猫 ||| 1\n".encode()], []),
    "zero": (
        [b"a ||| b ||| 1 1\n", b"a ||| b ||| 1 0\n", b"a ||| b ||| 0.00 1\n"],
        ["t:2: score of 0 or below (2 lines): Moses takes the logarithm: 0 becomes Moses's floor of -100, "
         "and a pair with a negative score is lost"],
    ),
    "empty": (
        [b"a ||| ||| 1\n", b" ||| b ||| 1\n"],
        ["t:1: empty target (1 line): scored as the end symbol alone; Moses reads it as a deletion, but its on-disk tables refuse it",
         "t:2: empty source (1 line): Moses skips such lines"],
    ),
    "not UTF-8": (
        [b"a\xff ||| b ||| 1\n", b"a\xed\xa0\x80 ||| b ||| 1\n", b"a\xc0\xaf ||| b ||| 1\n", b"a\0 ||| b ||| 1\n"],
        ["t:1: not UTF-8 (3 lines): kept byte for byte; such words are <unk>",
         "t:4: NUL byte (1 line): kept; tools written in C cut a text there"],
    ),
    "of an editor": (
        [b"\xef\xbb\xbfa ||| b ||| 1\n", b"\xef\xbb\xbfa ||| b ||| 1\n"],
        ["t:1: byte order mark (1 line): it is part of the first source word; most likely an editor put it there"],
    ),
    "of Windows": (
        [b"\xef\xbb\xbfa ||| b ||| 1\r\n", b"\xef\xbb\xbfa ||| b ||| 1\r\n"],
        ["t:1: byte order mark (1 line): it is part of the first source word; most likely an editor put it there",
         "t:1: CRLF line end (2 lines): kept; Moses's text loader strips the CR, but several of its tools do not"],
    ),
}  # fmt: skip


def warnings_of(lines):
    """What is found line by line, and in two runs, and only in odd lines."""
    odd, resumed, of_blocks = (LineWarnings("t") for _ in range(3))
    assert [line.line for line in odd.passing(parse_table(lines, "t"))] == lines
    parsed = list(parse_table(lines, "t"))
    resumed.look(parsed[:1])
    resumed = LineWarnings("t", counts=json.loads(json.dumps(resumed.counts)))
    resumed.look(parsed[1:])
    for block in parse_blocks([b"".join(lines)], "t"):
        of_blocks.look(block.odd_lines)
    assert list(odd.messages()) == list(resumed.messages()) == list(of_blocks.messages())
    return list(odd.messages())


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_counts_what_is_odd(case):
    lines, expected = case
    assert warnings_of(lines) == expected


NOT_POSITIVE = ["0", "-0", "+0", "0.", ".0", "0.000", "0e5", "-1", "-1.6", "-.5", "1e-400", "7e-46", "0.0e-3"]
NOT_POSITIVE += ["0." + "0" * 50 + "1", "00", "1e-0100", "-1e5", "+0.0"]
POSITIVE = ["1", "1e-44", "1.5e-45", "1E-7", "00.5", "+1", ".5", "0.0000001"]


@pytest.mark.parametrize("others", ["{}", "1 {} 1", "0.5\t{}", "{} 0.1"])
def test_scores_that_moses_cannot_take_the_logarithm_of(others):
    for score in NOT_POSITIVE + POSITIVE:
        line = b"a ||| b ||| %s |||\n" % others.format(score).encode()
        assert bool(warnings_of([line])) == (score in NOT_POSITIVE), score
