"""CoNLL-U: read, written, refused; factors."""

import random

from moses_rnn.analysis.conllu import Dependencies, format_conllu, format_factors, read_conllu
from moses_rnn.errors import FormatError
from tests.analysis.random_dependencies import LABELS, random_heads, sentence

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
    return list(read_conllu(text.splitlines(keepends=True), "t.conllu"))


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


def test_factors_are_words_with_their_relations():
    assert format_factors(READ) == b"I|nsubj have|root n't|advmod a|det clue|obj .|punct"
    assert format_factors(Dependencies((b"a|b",), (0,), (b"x|",))) == b"a&#124;b|x&#124;"
    assert format_factors(Dependencies((), (), ())) == b""


def test_damaged_sentences_are_read_or_refused():
    drawn = random.Random(2)
    for _ in range(500):
        damaged = bytearray(TEXT)
        for _ in range(drawn.randint(1, 4)):
            damaged[drawn.randrange(len(damaged))] = drawn.choice(b"\t\n\r0123456789-.# _x\xff\x00")
        try:
            sentences = read(bytes(damaged))
        except FormatError:
            continue
        for tree in sentences:
            assert all(0 <= head <= len(tree.words) for head in tree.heads)
            assert read(format_conllu(tree)) == [tree]
