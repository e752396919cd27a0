"""CoNLL-U: read, written, refused; arc-standard actions of every small tree and back, and whatever a network may write."""

import random

import pytest
from dependencies import (
    Dependencies,
    find_actions,
    format_conllu,
    read_conllu,
    run_actions,
)

from moses_rnn.errors import InputError
from tests.examples.parsing.random_dependencies import LABELS, all_heads, is_projective, random_heads, sentence

TEXT = b"""# sent_id = 1
# text = I haven't a clue.
1\tI\tI\tPRON\tPRP\tCase=Nom\t2\tnsubj\t2:nsubj\t_
2-3\thaven't\t_\t_\t_\t_\t_\t_\t_\t_
2\thave\thave\tVERB\tVBP\t_\t0\troot\t0:root\t_
3\tn't\tnot\tPART\tRB\t_\t2\tadvmod\t2:advmod\t_
3.1\thaving\thave\tVERB\t_\t_\t_\t_\t2:dep\t_
4\ta\ta\tDET\tDT\t_\t5\tdet\t5:det\t_
5\tclue\tclue\tNOUN\tNN\t_\t2\tobj\t2:obj\tSpaceAfter=No
6\t.\t.\tPUNCT\t.\t_\t2\tpunct\t2:punct\t_

"""
READ = Dependencies(
    (b"I", b"have", b"n't", b"a", b"clue", b"."),
    (2, 0, 2, 5, 2, 2),
    (b"nsubj", b"root", b"advmod", b"det", b"obj", b"punct"),
)


def read(text):
    return list(read_conllu(text, "t.conllu"))


def test_a_sentence_with_all_kinds_of_lines():
    assert read(TEXT) == [READ]
    assert read(b"\n" + TEXT + b"\n" + TEXT.rstrip(b"\n")) == [READ, READ]
    assert read(TEXT.replace(b"\n", b"\r\n")) == [READ]
    assert read(b"") == read(b"\n# a comment\n\n") == []


def test_what_is_written_is_read():
    drawn = random.Random(1)
    sentences = []
    for _ in range(200):
        count = drawn.randint(1, 12)
        sentences.append(sentence(random_heads(drawn, count), drawn.choices(LABELS, k=count)))
    assert read(b"".join(map(format_conllu, sentences))) == sentences


def test_a_word_with_blanks_is_one_word():
    line = b"1\t10 000\xc2\xa0F\t_\t_\t_\t_\t0\troot\t_\t_\n"
    assert read(line)[0].words == (b"10_000\xc2\xa0F",)


def test_damaged_sentences_are_read_or_refused():
    drawn = random.Random(2)
    for _ in range(500):
        damaged = bytearray(TEXT)
        for _ in range(drawn.randint(1, 4)):
            damaged[drawn.randrange(len(damaged))] = drawn.choice(b"\t\n\r0123456789-.# _x\xff\x00")
        try:
            sentences = read(bytes(damaged))
        except InputError:
            continue
        for tree in sentences:
            assert all(0 <= head <= len(tree.words) for head in tree.heads)
            assert read(format_conllu(tree)) == [tree]


DOG = (b"a", b"dog", b"sleeps")
DOG_SLEEPS = Dependencies(DOG, (2, 3, 0), (b"det", b"nsubj", b"root"))


def test_a_sentence_by_hand():
    assert find_actions(DOG_SLEEPS) == [b"SH", b"SH", b"LA:det", b"SH", b"LA:nsubj", b"RA:root"]


@pytest.mark.parametrize(("count", "trees", "projective"), [(1, 1, 1), (2, 3, 3), (3, 16, 12), (4, 125, 55), (5, 1296, 273), (6, 16807, 1428)])  # fmt: skip
def test_every_projective_tree_of_six_words_and_no_other_has_its_actions(count, trees, projective):
    """(n+1)^(n-1) trees, by Cayley; projective ones are the ternary trees, 1, 3, 12, 55 …"""
    counted = []
    for heads in all_heads(count):
        tree = sentence(heads)
        actions = find_actions(tree)
        assert (actions is not None) == is_projective(heads), heads
        counted.append(actions is not None)
        if actions is not None:
            assert (len(actions), actions.count(b"SH")) == (2 * count, count)
            assert run_actions(actions, tree.words) == (tree, 0, 0)
    assert (len(counted), sum(counted)) == (trees, projective)


EXECUTED = {  # actions, heads, labels, skipped, left over
    "right": ("SH SH LA:det SH LA:nsubj RA:root", (2, 3, 0), "det nsubj root", 0, 0),
    "words left on the stack": ("SH SH SH LA:x", (0, 3, 0), "dep x dep", 0, 2),
    "too many words": ("SH SH SH SH RA:a RA:b RA:c", (0, 1, 2), "c b a", 1, 0),
    "an empty stack": ("RA:x LA:x SH RA:r RA:r SH RA:r SH RA:r", (0, 0, 0), "r r r", 3, 0),
    "other tokens": ("SH <unk> sh SH LA: LA:det RA SH LA:nsubj RA: RA:root XX", (2, 3, 0), "det nsubj root", 6, 0),
    "a label with a colon": ("SH SH LA:a:b SH LA::c RA:root", (2, 3, 0), "a:b :c root", 0, 0),
}


@pytest.mark.parametrize("case", EXECUTED)
def test_whatever_is_written_becomes_a_tree(case):
    actions, heads, labels, skipped, left_over = EXECUTED[case]
    execution = run_actions(actions.encode().split(), DOG)
    assert execution.sentence == Dependencies(DOG, heads, tuple(labels.encode().split()))
    assert execution[1:] == (skipped, left_over)
    assert execution.malformed == (case not in {"right", "a label with a colon"})


def rows(*heads):
    """Words that have these heads, as CoNLL-U."""
    return b"".join(b"%d\tw\t_\t_\t_\t_\t%d\tx\t_\t_\n" % (i, head) for i, head in enumerate(heads, 1))


ROW = b"1\tw\t_\t_\t_\t_\t0\tx\t_\t_\n"
REFUSED = {  # a text, the line of what is wrong in it
    "two columns": (ROW + b"1\tdog\n", 2),
    "blanks between columns": (b"1 dog _ _ _ _ 0 root _ _", 1),
    "a word left out": (ROW + ROW.replace(b"1", b"3"), 2),
    "no number": (ROW.replace(b"1", b"x"), 1),
    "no word": (ROW.replace(b"w", b" "), 1),
    "no head": (ROW.replace(b"0", b"_"), 1),
    "a head below the root": (rows(-1), 1),
    "a head behind the end": (rows(3), 1),
    "no relation": (ROW.replace(b"x", b""), 1),
    "a relation with a blank": (ROW.replace(b"x", b"a b"), 1),
    "its own head": (rows(1), 1),
    "a circle": (rows(2, 1), 1),
    "a circle beside the root": (rows(3, 4, 0, 5, 4), 2),
}


@pytest.mark.parametrize(("text", "line"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_sentence_is_refused(text, line):
    with pytest.raises(InputError, match=rf"^t\.conllu:{line}: expected .+, found "):
        read(text)
