"""Tokens in place of rare words, held against the table of their kinds, and words in place of tokens."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as some

from moses_rnn.models.rare_words import KINDS, NOWHERE, RESERVED, RareWords, Shortlists, reserved_word
from tests.models.reference_rare_words import annotate, link_of

LETTERS = [b"%c" % letter for letter in b"abcdefghijklmnopqrst"]
SENTENCE = some.lists(some.sampled_from(LETTERS), max_size=16)
KNOWN = some.frozensets(some.sampled_from(LETTERS))
MARKED = "posall", "posunk"


def same(word):
    return word


@some.composite
def pairs(draw):
    """Two sentences of the same few words, links between them, and what is known of each."""
    source, target = draw(SENTENCE), draw(SENTENCE)
    points = [(j, i) for j in range(len(source)) for i in range(len(target))]
    links = tuple(draw(some.lists(some.sampled_from(points), max_size=25))) if points else ()
    return source, target, links, draw(KNOWN), draw(KNOWN)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("window", [1, 3, 7])
@given(pair=pairs())
def test_each_kind_is_as_its_row_says(kind, window, pair):
    source, target, links, known_source, known_target = pair
    rare = RareWords(kind, window)
    read, written = rare.annotate(source, target, links, Shortlists(known_source, known_target))
    assert (read, written) == annotate(kind, window, *pair)
    assert read == rare.annotate_source(source, known_source)
    new = {*read, *written} - known_source - known_target - {b"<unk>"}
    assert new <= {*rare.read_tokens, *rare.written_tokens}
    assert len(written) == len(target) * (1 + rare.doubles)


@pytest.mark.parametrize("kind", ["copyable", *MARKED])
@given(pair=pairs())
def test_a_round_trip_gives_back_every_unknown_word_that_equals_its_source_word(kind, pair):
    """With the identity dictionary, where a link says which word that is and the kind can express it."""
    source, target, links, known_source, known_target = pair
    rare, window = RareWords(kind), 7
    _, written = rare.annotate(source, target, links, Shortlists(known_source, known_target))
    restored = rare.restore(written, source, known_source, same)
    assert len(restored.words) == len(target)
    numbered = [word for word in dict.fromkeys(source) if word not in known_source][:9]
    for i, (word, back) in enumerate(zip(target, restored.words, strict=True), 1):
        d = link_of(i, links)
        linked = None if d is None else source[i + d - 1]
        if word in known_target or (
            linked == word and (linked in numbered if kind == "copyable" else abs(d) <= window)
        ):
            assert back == word
        else:
            assert back in (b"<unk>", linked)
    unknown = sum(word not in known_target for word in target)
    assert restored.replaced + restored.words.count(b"<unk>") == unknown


@given(pair=pairs())
def test_without_links_the_unknown_words_come_in_their_order(pair):
    source, target, links, known_source, known_target = pair
    rare = RareWords("noalign")
    _, written = rare.annotate(source, target, links, Shortlists(known_source, known_target))
    restored = rare.restore(written, source, known_source, same)
    unknown = [word for word in source if word not in known_source]
    rare_words = [word for word in target if word not in known_target]
    back = [new for old, new in zip(target, restored.words, strict=True) if old not in known_target]
    assert back == [*unknown, *[b"<unk>"] * len(rare_words)][: len(rare_words)]


NOTHING = frozenset()
SOURCE = [b"x1", b"x2", b"x3"]
RESTORED = {
    "points to the same place": ("posunk", b"<unk:0> b <unk:-2>", b"X1 b X1"),
    "points to the right": ("posunk", b"<unk:2>", b"X3"),
    "points outside": ("posunk", b"<unk:3> <unk:-2> a <unk:0>", b"<unk> <unk> a <unk>"),
    "points nowhere": ("posunk", b"<unk:n> <unk>", b"<unk> <unk>"),
    "a token of another kind": ("posunk", b"<p:0> <unk1>", b"<p:0> <unk1>"),
    "counts words only": ("posall", b"a <p:0> <unk> <p:1> b <p:n>", b"a X3 b"),
    "pointers of known words are dropped": ("posall", b"a <p:0> b <p:7>", b"a b"),
    "an unknown word without a pointer": ("posall", b"<unk> a <unk> <p:n>", b"<unk> a <unk>"),
    "pointers before all words and after each other": ("posall", b"<p:0> <p:1> <unk> <p:0> <p:1>", b"X1"),
    "numbers": ("copyable", b"<unk2> <unk1> <unk2>", b"X2 X1 X2"),
    "a number that no word has": ("copyable", b"<unk4> <unk0> <unk>", b"<unk> <unk> <unk>"),
    "one after the other": ("noalign", b"<unk> a <unk> <unk> <unk>", b"X1 a X2 X3 <unk>"),
    "nothing": ("posunk", b"", b""),
}


@pytest.mark.parametrize("case", RESTORED)
def test_tokens_are_restored_from_where_they_point_to(case):
    kind, written, expected = RESTORED[case]
    restored = RareWords(kind).restore(written.split(), SOURCE, NOTHING, bytes.upper)
    assert b" ".join(restored.words) == expected
    assert restored.replaced == expected.count(b"X")
    for place, word in zip(restored.kept, restored.words, strict=True):
        assert word == written.split()[place] or written.split()[place].startswith(b"<unk")


PLACES = {
    "posunk": (b"a <unk:-1> <unk:n> <unk:5>", [None, 0, NOWHERE, NOWHERE]),
    "posall": (b"a <p:1> <unk> <p:-1> b", [1, 0, None]),
    "copyable": (b"a <unk2> <unk0>", [None, 1, NOWHERE]),
}


@pytest.mark.parametrize("kind", PLACES)
def test_words_keep_the_places_that_tokens_name(kind):
    written, places = PLACES[kind]
    assert RareWords(kind).restore(written.split(), SOURCE, NOTHING, bytes.upper).places == places


def test_a_restored_text_is_annotated_as_it_was_written():
    random.seed(5)
    for kind in PLACES:
        rare = RareWords(kind, 2)
        for _ in range(200):
            source, target = (random.choices(LETTERS, k=random.randrange(1, 9)) for _ in range(2))
            links = [(random.randrange(len(source)), i) for i in range(len(target)) if random.random() < 0.8]
            lists = Shortlists(*(frozenset(random.sample(LETTERS, 5)) for _ in range(2)))
            tokens = rare.annotate(source, target, links, lists)[1]
            restored = rare.restore(tokens, source, lists.read, bytes.upper)  # capitals are in no shortlist
            found = [(j, i) for i, j in enumerate(restored.places) if j is not None and j != NOWHERE]
            assert rare.annotate(source, restored.words, found, lists)[1] == tokens


def test_the_tenth_unknown_word_has_no_number():
    tokens = RareWords("copyable").annotate_source([b"w%d" % i for i in range(11)], NOTHING)
    assert tokens == [*(b"<unk%d>" % i for i in range(1, 10)), b"<unk0>", b"<unk0>"]


@pytest.mark.parametrize("kind", KINDS)
def test_tokens_are_those_of_the_kind_and_all_are_reserved(kind):
    rare = RareWords(kind, 2)
    written = {
        "noalign": [],
        "copyable": [b"<unk%d>" % i for i in (*range(1, 10), 0)],
        "posall": [b"<p:-2>", b"<p:-1>", b"<p:0>", b"<p:1>", b"<p:2>", b"<p:n>"],
        "posunk": [b"<unk:-2>", b"<unk:-1>", b"<unk:0>", b"<unk:1>", b"<unk:2>", b"<unk:n>"],
    }[kind]
    assert rare.written_tokens == written
    assert rare.read_tokens == (written if kind == "copyable" else [])
    assert all(RESERVED.fullmatch(token) for token in written)


def test_reserved_words_are_known_by_their_spelling():
    assert reserved_word([b"a", b"&lt;unk&gt;", b"<b>", b"<unka>", b"<unk10>", b"<unk:->"]) is None
    for token in (b"<unk>", b"<unk0>", b"<unk:-12>", b"<unk:n>", b"<p:3>", b"<p:n>"):
        assert reserved_word([b"a", token, b"<p:0>"]) == token


def test_any_text_at_all_is_restored():
    random.seed(3)
    for kind in KINDS:
        rare = RareWords(kind)
        tokens = [b"a", b"<unk>", b"<p:n>", b"<p:-3>", b"<p:2>", *rare.written_tokens]
        for _ in range(200):
            written = random.choices(tokens, k=random.randrange(9))
            restored = rare.restore(written, SOURCE[: random.randrange(4)], NOTHING, same)
            assert len(restored.words) == len(restored.kept) <= len(written)
