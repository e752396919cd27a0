"""Lines that are accepted and lines that are refused, for every parser of them."""

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


def with_scores(line, added):
    """The bytes of a parsed line with further scores after its own."""
    end = line.spans.scores_end
    return b"%b %b%b" % (line.line[:end], added, line.line[end:])


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
    "factors": (b"maison|N ||| house ||| 1\n", r"t:7: expected source words without factors, found 'maison\|N'\n  If these are factors, choose the one to use with moses-rnn-train --source-factor"),
    "target factors": (b"maison ||| house|N ||| 1\n", "expected target words without factors"),
    "hierarchical": (b"le [X][X] [X] ||| the [X][X] [X] ||| 1\n", r"expected words without brackets, found 'le \[X\]\[X\] \[X\]'"),
    "a bracketed word inside": (b"a ||| b [x] c ||| 1\n", r"expected words without brackets, found 'b \[x\] c'"),
    "rule of Hiero": (b"[X] ||| le [X,1] ||| the [X,1] ||| 1\n", "expected source \\|\\|\\| target .*\n  Rules that begin with their left-hand side come from Hiero"),
    "CR inside": (b"a ||| b ||| 0.5\r ||| 0-0\n", r"expected a number as score 1 of 1, found '0.5\\r'"),
    "only CR": (b"a ||| b ||| \r\n", "expected scores in field 3, found none"),
    "too large for a float32": (b"a ||| b ||| 1 3.5e38\n", "expected a finite number as score 2, found '3.5e38'"),
    "too large for a double": (b"a ||| b ||| -1e400\n", "expected a finite number as score 1, found '-1e400'"),
    "large without exponent": (b"a ||| b ||| " + b"9" * 39 + b"\n", "expected a finite number as score 1, found '999"),
    "pairs with a tab between": (b"la maison\tthe house\n", "found 1: .*\n.*--format tsv"),
    "a column of scores": (b"-12.5\n", "found 1: '-12.5'\n  One number per line looks like a column of scores"),
    "a text": (b"the house .\n", "found 1: 'the house .'\n  A line of text.*moses-rnn nmt"),
    "an n-best list": (b"0 ||| a b ||| LM0= -1.5 ||| -1.5\n", "found 'LM0='\n  An n-best list. Give it to moses-rnn nbest"),
    "decimal comma": (b"a ||| b ||| 0,5\n", "found '0,5'\n  Written under a locale with decimal commas?"),
}  # fmt: skip
