"""Which words translate a word: from files and from aligned sentences."""

from moses_rnn.moses.lexicon import Lexicon, count_links, lexicon_of, read_lexicon

DICTIONARY = [b"cat chat 0.5\n", b"cat minou 0.25\n", b"cat chatte .25\r\n", b"the\tle 1"]


def test_the_likeliest_come_first():
    lexicon = read_lexicon(DICTIONARY, "l")
    assert lexicon.likeliest(b"cat", 9) == [b"chat", b"chatte", b"minou"]  # of equally likely ones the first in bytes
    assert lexicon.likeliest(b"cat", 2) == [b"chat", b"chatte"]
    assert (lexicon.best(b"the"), lexicon.best(b"NULL"), lexicon.best(b"dog")) == (b"le", None, None)
    assert list(lexicon.lines()) == [b"cat chat 0.5\n", b"cat chatte 0.25\n", b"cat minou 0.25\n", b"the le 1\n"]
    assert read_lexicon(lexicon.lines(), "l") == lexicon
    assert lexicon.coverage([b"cat", b"the", b"le", b"dog"]) == (2, 1)  # words that it translates, and that it writes
    lexicon = read_lexicon([b"a b 0\n", b"a c 0.5\n", b"d e 0\n"], "lex")  # p = 0 is no translation
    assert (lexicon.likeliest(b"a", 9), lexicon.best(b"d"), list(lexicon.entries)) == ([b"c"], None, [b"a"])


def test_null_is_no_word():
    lines = [b"the NULL 0.6\n", b"the le 0.3\n", b"NULL de 0.5\n", b"NULL NULL 0\n", b"of NULL 1\n", b"null nul 1\n"]
    lexicon = read_lexicon(lines, "lex")
    assert list(lexicon.lines()) == [b"null nul 1\n", b"the le 0.3\n"]
    assert lexicon.left_out == 4


def test_links_are_counted_and_rare_ones_left_out():
    pairs = [
        ([b"the", b"cat"], [b"le", b"chat"], ((0, 0), (1, 1))),
        ([b"cat"], [b"chat"], ((0, 0), (0, 0))),  # twice the same counts once
        ([b"cat"], [b"minou"], ((0, 0),)),
        ([b"dog"], [b"chien"], ()),
    ]
    counts = count_links(pairs)
    assert lexicon_of(counts) == Lexicon({b"the": [(b"le", 1.0)], b"cat": [(b"chat", 2 / 3), (b"minou", 1 / 3)]})
    assert lexicon_of(counts, 2) == Lexicon({b"cat": [(b"chat", 2 / 3)]})  # a share of all links
