"""Lines of a table that is extended, as bytes and parsed."""

from moses_rnn.formats.phrase_table import parse_table

TABLE = [
    b"a b ||| x y ||| 0.5 0.4 0.5 0.3 ||| 0-0 1-1 ||| 2 3 1 ||| |||\n",
    b"a b ||| x ||| 0.5 0.2 0.25 0.1 ||| 0-0 1-0 ||| 4 3 1 ||| |||\n",
    b"a ||| x ||| 0.8 0.7 0.6 0.5 ||| 0-0 ||| 5 6 4 ||| |||\n",
    b"b ||| y ||| 1 0.9 0.2 0.1 ||| 0-0 ||| 3 3 3 ||| |||\n",
]


def parsed(lines=TABLE):
    return list(parse_table(lines, "t"))
