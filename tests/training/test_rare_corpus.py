"""Two texts and their alignment as training material whose rare words are annotated."""

import itertools

import pytest

from moses_rnn.errors import FormatError
from moses_rnn.scorers.rare_words import KINDS, RareWords
from moses_rnn.training.materials import SentencePairs
from moses_rnn.training.networks import choose
from tests.training.rare import LINES, WATCH, write_aligned
from tests.training.sentences import sentence_options


@pytest.fixture
def prefix(tmp_path):
    return write_aligned(tmp_path, "train")


def build(prefix, folder, kind="posunk", **changes):
    """The corpus of some pairs; a dev text is aligned too."""
    links = {} if kind == "noalign" else {"alignment": str(prefix.with_suffix(".links"))}
    if "dev" in changes:
        links["dev_alignment"] = f"{changes['dev']}.links"
    how = {"rare": kind, "held_out": 1, "min_count": 2, "max_length": 6, **links, **changes}
    return SentencePairs(choose(sentence_options(prefix, **how)), WATCH).build(folder)


def sentences(phrases, vocabulary):
    places = itertools.pairwise(phrases.ends.tolist())
    return [b" ".join(vocabulary.words[i] for i in phrases.tokens[begin:end]) for begin, end in places]


EXPECTED = {
    "noalign": (b"the cat <unk>", b"le chat <unk>"),
    "copyable": (b"the cat <unk1>", b"le chat <unk1>"),
    "posall": (b"the cat <unk>", b"le <p:0> chat <p:0> <unk> <p:0>"),
    "posunk": (b"the cat <unk>", b"le chat <unk:0>"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_rare_words_are_annotated_and_the_tokens_known(prefix, tmp_path, kind):
    corpus = build(prefix, tmp_path / "arrays", kind)
    rare = RareWords(kind)
    tokens = len(rare.read_tokens), len(rare.written_tokens)
    read, written = corpus.source_vocabulary, corpus.target_vocabulary
    assert read.words[: 2 + tokens[0]] == [b"<unk>", b"</s>", *rare.read_tokens]
    assert written.words[: 2 + tokens[1]] == [b"<unk>", b"</s>", *rare.written_tokens]
    assert {*read.words[2 + tokens[0] :]} == {b"the", b"cat", b"dog"}
    assert {*written.words[2 + tokens[1] :]} == {b"le", b"chat", b"chien"}
    assert sentences(corpus.source, read)[0] == EXPECTED[kind][0]
    assert sentences(corpus.target, written)[0] == EXPECTED[kind][1]
    counts = corpus.statistics
    assert (counts.pairs, counts.too_long, counts.empty) == (len(LINES), 1, 1)
    assert (counts.source_words, counts.target_words) == (6, 6)


def test_the_other_direction_is_annotated_from_the_other_side(prefix, tmp_path):
    corpus = build(prefix, tmp_path / "arrays", inverse=True)
    assert sentences(corpus.source, corpus.source_vocabulary)[:2] == [b"le chat <unk>", b"le <unk> chien"]
    assert sentences(corpus.target, corpus.target_vocabulary)[:2] == [b"the cat <unk:0>", b"the dog <unk:-1>"]


def test_a_dev_text_is_annotated_by_the_shortlists_of_training(prefix, tmp_path):
    dev = write_aligned(tmp_path, "dev", [(b"the the", b"le le", b"0-0 1-1"), (b"new dog", b"neuf chien", b"0-0")])
    corpus = build(prefix, tmp_path / "arrays", dev=str(dev))
    held_out = corpus.held_out.tolist()
    assert [sentences(corpus.target, corpus.target_vocabulary)[i] for i in held_out] == [b"le le", b"<unk:0> chien"]


REFUSED = {
    "a token in the source": (
        "train.src",
        b"a <unk> b",
        "train.src:3: expected no word that is spelled as a token, found",
    ),
    "a token in the target": (
        "train.trg",
        b"<p:-1>",
        "train.trg:3: expected no word that is spelled as a token, found",
    ),
    "no links": ("train.links", b"0-0 x", "train.links:3: expected links such as 0-0 2-1, found 'x'"),
    "other words": ("train.links", b"0-0 9-9", "train.links:3: expected links between 2 source and 2 target words"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_annotated_is_named_with_its_line(prefix, tmp_path, case):
    name, line, message = REFUSED[case]
    path = tmp_path / name
    lines = path.read_bytes().split(b"\n")
    lines[2] = line
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(FormatError) as caught:
        build(prefix, tmp_path / "arrays")
    assert message in str(caught.value)
