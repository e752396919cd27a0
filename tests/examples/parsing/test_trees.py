"""Bracketed and linearised trees: there and back, spans, repair, what is refused."""

import random
from collections import Counter

import pytest
from trees import Tree, count_spans, format_tree, read_trees, rebuild

from moses_rnn.errors import InputError

PAGE = b"(S (NP (NNP John)) (VP (VBZ has) (NP (DT a) (NN dog))) (. .))"
LINEARISED = b"(S (NP XX )NP (VP XX (NP XX XX )NP )VP XX )S"

# Trees drawn at random: a phrase is a label and its parts, a word its tag and itself,
# ("NP", [("DT", "the"), ("NN", "dog")]); and what they are as text and as spans, by recursion
LABELS = ["S", "NP", "VP", "XX", "NP-SBJ=2", "-", "ё"]
TAGS = ["DT", "NN", "XX", ",", "-LRB-"]
WORDS = ["the", "dog", "(", "a)b", "|", "XX", "\N{NO-BREAK SPACE}", "..", "&#91;", "SH"]


def random_tree(random, depth=4):
    """A phrase of one to four parts, each of which is a word at the latest when the depth is used up."""
    parts = [
        random_tree(random, depth - 1)
        if depth > 1 and random.random() < 0.5
        else (random.choice(TAGS), random.choice(WORDS))
        for _ in range(random.randint(1, 4))
    ]
    return random.choice(LABELS), parts


def is_word(tree):
    return isinstance(tree[1], str)


def leaves_of(tree):
    """(tag, word) of each word."""
    return [tree] if is_word(tree) else [leaf for part in tree[1] for leaf in leaves_of(part)]


def bracketed(tree):
    if is_word(tree):
        return f"({tree[0]} {tree[1].replace('(', '-LRB-').replace(')', '-RRB-')})"
    return f"({tree[0]} {' '.join(map(bracketed, tree[1]))})"


def linearised(tree):
    if is_word(tree):
        return "XX"
    return " ".join([f"({tree[0]}", *map(linearised, tree[1]), f"){tree[0]}"])


def spans(tree, begin=0):
    """(label, first word, one behind the last) of each phrase."""
    if is_word(tree):
        return []
    inner, at = [], begin
    for part in tree[1]:
        inner += spans(part, at)
        at += len(leaves_of(part))
    return [(tree[0].encode(), begin, at), *inner]


def read(text, name="t"):
    return list(read_trees(text, name))


def trees(count=300, seed=1):
    drawn = random.Random(seed)
    return [random_tree(drawn) for _ in range(count)]


def test_the_example_of_the_paper():
    """Vinyals et al. 2015, figure 2, with XX for its parts of speech."""
    (tree,) = read(PAGE)
    assert b" ".join(tree.tokens) == LINEARISED
    assert (tree.words, tree.tags) == ((b"John", b"has", b"a", b"dog", b"."), (b"NNP", b"VBZ", b"DT", b"NN", b"."))
    assert format_tree(tree) == PAGE


def test_random_trees_are_read_as_they_are_written():
    drawn = trees()
    lines = [bracketed(tree).encode() for tree in drawn]
    for tree, line, nested in zip(read(b"\n".join(lines)), lines, drawn, strict=True):
        assert format_tree(tree) == line
        assert b" ".join(tree.tokens).decode() == linearised(nested)
        leaves = [(tag.encode(), word.encode()) for tag, word in leaves_of(nested)]
        assert list(zip(tree.tags, tree.words, strict=True)) == leaves
        assert count_spans(tree) == Counter(spans(nested))
        rebuilt, malformed = rebuild(tree.tokens, tree.words)
        assert (rebuilt.tokens, rebuilt.words, malformed) == (tree.tokens, tree.words, False)
        assert set(rebuilt.tags) == {b"XX"}


def test_line_ends_and_blanks_mean_nothing():
    drawn = random.Random(4)
    for tree in trees(50, seed=4):
        text = bracketed(tree)
        spread = text.replace(" ", drawn.choice(["\n", "  ", "\t", "\r\n\n "])).replace("(", "( ").encode()
        assert read(spread + b"\n" + spread) == 2 * read(text.encode())


def test_no_character_parts_words_but_blanks_and_parentheses():
    (tree,) = read(b"(X (A a\xc2\xa0b) (A c\xe2\x80\xa8d\x85\x0b))\n")
    assert tree.words == (b"a\xc2\xa0b", b"c\xe2\x80\xa8d\x85\x0b")


def test_a_bracket_around_the_whole_tree_counts_for_nothing():
    assert read(b"( " + PAGE + b" )\n(((X (A a))))") == [*read(PAGE), Tree((b"a",), (b"A",), (b"(X", b"XX", b")X"))]


def with_empty_elements(tree, random):
    """Brackets as in the Penn Treebank: with empty elements, some of them in brackets of their own."""
    if is_word(tree):
        return bracketed(tree)
    parts = [with_empty_elements(part, random) for part in tree[1]]
    for _ in range(random.randint(0, 2)):
        empty = random.choice(["(-NONE- 0)", "(NP-SBJ (-NONE- *-1))", "(S (NP\n(-NONE- *)) (VP (-NONE- *?*)))"])
        parts.insert(random.randint(0, len(parts)), empty)
    return f"({tree[0]} {' '.join(parts)})"


def test_empty_elements_and_brackets_around_nothing_else_are_left_out():
    drawn = random.Random(7)
    for tree in trees(100, seed=7):
        text = bracketed(tree).encode()
        assert read(b"( " + with_empty_elements(tree, drawn).encode() + b" )") == read(text)
    assert read(b"( (S (NP-SBJ (-NONE- *-1))) )\n(-NONE- *)(X (-NONE- a) (-NONES- b))") == [
        *[Tree((), (), ())] * 2,
        Tree((b"b",), (b"-NONES-",), (b"(X", b"XX", b")X")),
    ]


@pytest.mark.parametrize("nothing", [b"()", b"( )", b"(())", b"( (\n) )"])
def test_a_bracket_of_nothing_is_a_sentence_without_words(nothing):
    assert read(nothing + b"\n" + PAGE) == [Tree((), (), ()), *read(PAGE)]


def test_several_trees_and_none_share_a_bracket():
    several = Tree((b"a", b"b"), (b"XX", b"XX"), (b"(X", b"XX", b")X", b"XX"))
    assert format_tree(several) == b"( (X (XX a)) (XX b))"
    none = Tree((), (), ())
    assert read(format_tree(several) + format_tree(none)) == [several, none]


def test_a_tree_may_be_deeper_than_pythons_stack():
    deep = b"(A " * 5000 + b"(B b)" + b")" * 5000
    (tree,) = read(deep)
    assert len(count_spans(tree)) == 1
    assert format_tree(tree) == deep
    assert rebuild([b"(A"] * 5000 + [b"XX"], [b"w"]).tree.tokens == tree.tokens


def test_damaged_trees_are_read_or_refused():
    drawn = random.Random(6)
    for _ in range(500):
        damaged = bytearray(PAGE + b"\n" + PAGE)
        for _ in range(drawn.randint(1, 3)):
            damaged[drawn.randrange(len(damaged))] = drawn.choice(b"() \t\n\rX\xff\x00")
        try:
            got = read(bytes(damaged))
        except InputError:
            continue
        for tree in got:
            assert rebuild(tree.tokens, tree.words).tree.tokens == tree.tokens
            assert read(format_tree(tree)) == [tree]


REPAIRED = {  # written, number of words, what is made of it, malformed
    "right": ("(S (NP XX )NP XX )S", 2, "(S (NP XX )NP XX )S", False),
    "a word is a tree": ("XX", 1, "XX", False),
    "another label": ("(S (NP XX )VP XX )S", 2, "(S (NP XX )NP XX )S", True),
    "a closer too many": ("(S XX )S )S", 1, "(S XX )S", True),
    "closers missing": ("(S XX (NP XX", 2, "(S XX (NP XX )NP )S", True),
    "too many words": ("(S XX (NP XX XX )NP XX )S", 2, "(S XX (NP XX )NP )S", True),
    "too few words": ("(S XX (NP XX )NP )S", 4, "(S XX (NP XX )NP XX XX )S", True),
    "no words": ("(S (NP )NP )S", 2, "(S XX XX )S", True),
    "empty for lack of words": ("(S XX (NP XX )NP )S", 1, "(S XX )S", True),
    "no brackets": ("XX", 3, "XX XX XX", True),
    "nothing": ("", 2, "XX XX", True),
    "brackets as labels": ("(( (S XX )S ((", 1, "(S XX )S", True),
    "other tokens": ("(S <unk> dog XX ( )S", 1, "(S XX )S", True),
    "two trees": ("(S XX )S (S XX )S", 2, "(S XX )S (S XX )S", True),
}


@pytest.mark.parametrize("case", REPAIRED)
def test_what_is_no_tree_is_repaired(case):
    written, count, tokens, malformed = REPAIRED[case]
    words = [b"w%d" % i for i in range(count)]
    rebuilt = rebuild(written.encode().split(), words)
    assert (b" ".join(rebuilt.tree.tokens).decode(), rebuilt.malformed) == (tokens, malformed)
    assert rebuilt.tree.words == tuple(words)


def test_whatever_is_written_becomes_trees_over_the_words():
    drawn = random.Random(5)
    tokens = [b"(S", b")S", b"(NP", b")NP", b"XX", b"<unk>", b")", b"("]
    for _ in range(500):
        words = [b"w"] * drawn.randint(1, 5)
        rebuilt = rebuild(drawn.choices(tokens, k=drawn.randint(0, 12)), words)
        assert rebuild(rebuilt.tree.tokens, words).tree == rebuilt.tree
        assert read(format_tree(rebuilt.tree)) == [rebuilt.tree]


REFUSED = {  # a text, the line of what is wrong in it
    "a word outside a tree": (b"\n dog", 2),
    "an end too many": (b"(S (A a)))", 1),
    "no end": (b"(S (A a))\n(S\n(NP (A a))\n", 2),
    "two words with one tag": (b"(A a b)", 1),
    "a word without a tag": (b"(A (B b)\nc)", 2),
    "a bracket after a word": (b"(A a (B b))", 1),
    "a bracket without words": (b"(A (B b) (C))", 1),
    "nothing in a tree": (b"(A (B b) ())", 1),
    "no label in a tree": (b"(A ((B b)))", 1),
}


@pytest.mark.parametrize(("text", "line"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_tree_is_refused(text, line):
    with pytest.raises(InputError, match=rf"^t:{line}: expected .+, found "):
        read(text)
