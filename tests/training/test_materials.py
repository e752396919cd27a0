"""Parallel texts, annotated or not; what the first rank makes of a corpus is mapped by the others."""

import gzip
import itertools

import numpy as np
import pytest

from moses_rnn.errors import FormatError, InputError, Stopped
from moses_rnn.models.rare_words import KINDS, RareWords
from moses_rnn.training import materials
from moses_rnn.training.corpus import Corpus, CorpusConfig, build_corpus
from moses_rnn.training.materials import ParallelTexts, SentencePairs, Watch, build_on_first_rank
from moses_rnn.training.text_corpus import TextConfig, TextCorpus, build_text_corpus
from moses_rnn.training.training_options import choose
from tests.training.pretended_ranks import in_ranks
from tests.training.small import never, sentence_options

WATCH = Watch(lambda *_: None, never)


def pairs(folder):
    pairs = [(b"a%d b" % (i % 9), b"x%d y%d" % (i % 7, i)) for i in range(50)]
    return build_corpus(pairs, folder, CorpusConfig(held_out_pairs=5))


def text(folder):
    lines = [b"a%d b\n" % (i % 9) for i in range(50)]
    return build_text_corpus(lambda: lines, None, ("t", ""), folder, 2, TextConfig())


class Material:
    def __init__(self, make=pairs):
        self.built, self._make = [], make
        self.corpus = TextCorpus if make is text else Corpus

    def build(self, folder):
        self.built.append(self._make(folder))
        return self.built[-1]


def leaves(value):
    """The numbers, texts and arrays that a corpus consists of."""
    if isinstance(value, np.ndarray) or not hasattr(value, "__dict__"):
        return [value]
    return list(itertools.chain(*map(leaves, vars(value).values())))


@pytest.mark.parametrize("make", [pairs, text])
def test_every_rank_has_the_corpus_of_the_first(tmp_path, make):
    material = Material(make)
    (tmp_path / "training.npy").symlink_to(tmp_path / "victim")
    corpora = in_ranks(3, lambda ranks: build_on_first_rank(ranks, tmp_path, material, never))
    (made,) = material.built
    for corpus in corpora:
        for mapped, whole in zip(leaves(corpus), leaves(made), strict=True):
            assert np.array_equal(mapped, whole)
            if isinstance(whole, np.ndarray):
                assert (mapped.dtype, mapped.flags.writeable) == (whole.dtype, False)
    if make is pairs:
        assert corpora[1].unigram_nats_per_token == made.unigram_nats_per_token


def test_a_folder_that_is_not_shared_is_an_error(tmp_path):
    class Elsewhere(Material):
        def build(self, folder):
            return Elsewhere()

        def save(self, folder):
            pass

    with pytest.raises(
        InputError,
        match="corpus.json: expected the files that the first process wrote there, found: No such file.*\n.*must share",
    ):
        in_ranks(2, lambda ranks: build_on_first_rank(ranks, tmp_path, Elsewhere(), never))


def texts(folder, source, target):
    (folder / "t.en").write_bytes(source)
    (folder / "t.fr.gz").write_bytes(gzip.compress(target))
    return ParallelTexts.of_prefix(str(folder / "t"), "en", "fr")


def test_lines_are_paired_compressed_or_not(tmp_path):
    both = texts(tmp_path, b"a b\r\n\nc", b"x\ny z\n\n")
    assert list(both.pairs(WATCH)) == [(b"a b", b"x"), (b"", b"y z"), (b"c", b"")]


def test_a_text_that_loses_lines_while_it_is_read_is_refused(tmp_path):
    both = texts(tmp_path, b"a\nb\n", b"x\ny\n")
    (tmp_path / "t.en").write_bytes(b"a\n")
    with pytest.raises(InputError, match=r"t\.en, .*t\.fr\.gz: were changed while they were read"):
        list(both.pairs(WATCH))


def test_an_alignment_that_loses_lines_while_it_is_read_is_refused(tmp_path):
    texts(tmp_path, b"a\nb\n", b"x\ny\n")
    (tmp_path / "links").write_bytes(b"0-0\n0-0\n")
    aligned = ParallelTexts.of_prefix(str(tmp_path / "t"), "en", "fr", str(tmp_path / "links"))
    (tmp_path / "links").write_bytes(b"0-0\n")
    with pytest.raises(InputError, match="links: was changed while it was read"):
        list(aligned.aligned_pairs(WATCH))


def test_reading_is_observed_and_can_be_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(materials, "LINES_AT_ONCE", 2)
    both, seen = texts(tmp_path, b"a\n" * 5, b"x\n" * 5), []
    list(both.pairs(Watch(lambda lines, share: seen.append((lines, share)), lambda: False)))
    assert len(seen) == 3
    assert seen[-1] == (5, 1.0)
    with pytest.raises(Stopped, match="run the same command again"):
        list(both.pairs(Watch(lambda *_: None, lambda: True)))


LINES = [  # source, target, links
    (b"the cat zebra", b"le chat zebre", b"0-0 1-1 2-2"),
    (b"the dog gnu", b"le gnou chien", b"0-0 1-2 2-1"),
    (b"dog cat", b"chien chat", b"0-0 1-1"),
    (b"", b"le", b""),
    (b"the the the the the the the", b"le", b"0-0"),
    (b"the okapi", b"le okapi", b"1-1"),
    (b"dog the", b"chien le", b"0-0 1-1"),
]


def write_aligned(folder, name, lines=LINES):
    """NAME.src, NAME.trg and NAME.links; gives the prefix."""
    for ending, texts in zip(("src", "trg", "links"), zip(*lines, strict=True), strict=True):
        (folder / f"{name}.{ending}").write_bytes(b"".join(text + b"\n" for text in texts))
    return folder / name


@pytest.fixture
def prefix(tmp_path):
    return write_aligned(tmp_path, "train")


def annotated(prefix, kind="posunk", **changes):
    """Some pairs; a dev text is aligned too."""
    links = {} if kind == "noalign" else {"alignment": str(prefix.with_suffix(".links"))}
    if "dev" in changes:
        links["dev_alignment"] = f"{changes['dev']}.links"
    how = {"rare": kind, "held_out": 1, "min_count": 2, "max_length": 6, **links, **changes}
    return SentencePairs(*choose(sentence_options(prefix, **how)), WATCH)


def build_annotated(prefix, folder, kind="posunk", **changes):
    return annotated(prefix, kind, **changes).build(folder)


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
    corpus = build_annotated(prefix, tmp_path / "arrays", kind)
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
    described = annotated(prefix, kind).describe(corpus)
    assert described[2].startswith(f"read: 3 of {counts.source_words} words, ")
    assert described[3].startswith(f"written: 3 of {counts.target_words} words, ")
    assert (counts.source_words, counts.target_words) == (6, 6)


def test_the_other_direction_is_annotated_from_the_other_side(prefix, tmp_path):
    corpus = build_annotated(prefix, tmp_path / "arrays", inverse=True)
    assert sentences(corpus.source, corpus.source_vocabulary)[:2] == [b"le chat <unk>", b"le <unk> chien"]
    assert sentences(corpus.target, corpus.target_vocabulary)[:2] == [b"the cat <unk:0>", b"the dog <unk:-1>"]


def test_a_dev_text_is_annotated_by_the_shortlists_of_training(prefix, tmp_path):
    dev = write_aligned(tmp_path, "dev", [(b"the the", b"le le", b"0-0 1-1"), (b"new dog", b"neuf chien", b"0-0")])
    corpus = build_annotated(prefix, tmp_path / "arrays", dev=str(dev))
    held_out = corpus.held_out.tolist()
    assert [sentences(corpus.target, corpus.target_vocabulary)[i] for i in held_out] == [b"le le", b"<unk:0> chien"]


REFUSED = {
    "a token in the source": ("train.src", b"a <unk> b", "train.src:3: expected no word that is spelled like a token, found"),
    "a token in the target": ("train.trg", b"<p:-1>", "train.trg:3: expected no word that is spelled like a token, found"),
    "no links": ("train.links", b"0-0 x", "train.links:3: expected links such as 0-0 2-1, found 'x'"),
    "other words": ("train.links", b"0-0 9-9", "train.links:3: expected links between 2 source and 2 target words"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_annotated_is_named_with_its_line(prefix, tmp_path, case):
    name, line, message = REFUSED[case]
    path = tmp_path / name
    lines = path.read_bytes().split(b"\n")
    lines[2] = line
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(FormatError) as caught:
        build_annotated(prefix, tmp_path / "arrays")
    assert message in str(caught.value)
