import gzip
import hashlib
import importlib
import math
import re
import subprocess
import sys

import pytest

from moses_rnn.analysis.dependencies import find_actions, read_conllu
from moses_rnn.analysis.trees import count_spans, read_trees
from moses_rnn.moses.ini import MosesIni
from moses_rnn.table.phrase_table import parse_line, parse_table
from tests.commands import ROOT
from tests.conftest import EXAMPLES


def test_the_corpus_is_what_its_script_makes(tmp_path):
    subprocess.run([sys.executable, EXAMPLES / "make_corpus.py", tmp_path], check=True)
    for language in ("en", "fr"):
        with gzip.open(EXAMPLES / "corpus" / f"train.{language}.gz") as shipped:
            assert shipped.read() == (tmp_path / f"train.{language}").read_bytes()
        for name in ("dev", "test"):
            assert (EXAMPLES / "corpus" / f"{name}.{language}").read_bytes() == (
                tmp_path / f"{name}.{language}"
            ).read_bytes()


@pytest.fixture(scope="module")
def treebank(tmp_path_factory):
    folder = tmp_path_factory.mktemp("treebank")
    subprocess.run([sys.executable, EXAMPLES / "make_trees.py", folder], check=True)
    return folder


def test_the_treebank_is_the_same_again(treebank):
    """So that figures of docs/results.md can be had again."""
    digest = hashlib.sha256((treebank / "test.trees").read_bytes() + (treebank / "test.conllu").read_bytes())
    assert digest.hexdigest()[:16] == "47d2916adef442f6"
    assert sorted(path.name for path in treebank.iterdir()) == [
        f"{name}.{ending}" for name in ("dev", "test", "train") for ending in ("conllu", "trees")
    ]


def test_trees_and_dependencies_are_of_the_same_sentences(treebank):
    with (treebank / "test.trees").open("rb") as lines:
        trees = list(read_trees(lines, "test.trees"))
    with (treebank / "test.conllu").open("rb") as lines:
        sentences = list(read_conllu(lines, "test.conllu"))
    assert [tree.words for tree in trees] == [sentence.words for sentence in sentences]
    assert len(trees) == 300
    for tree, sentence in zip(trees, sentences, strict=True):
        assert find_actions(sentence) is not None
        assert sentence.heads.count(0) == 1
        assert tree.tags[sentence.heads.index(0)] in {b"VB", b"VBP", b"VBZ"}
        spans = {(begin, end) for _, begin, end in count_spans(tree)}
        for begin, end in spans:  # of the words of a bracket, one alone depends on a word outside it
            outside = [head for head in sentence.heads[begin:end] if not begin < head <= end]
            assert len(outside) == 1, (tree, sentence)


def english():
    """The English side of the grammar as a regular expression, without its agreement."""

    def one_of(texts):
        return "(?:" + "|".join(sorted({text.lower() for text in texts}, key=len, reverse=True)) + ")"

    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EXAMPLES)
        corpus = importlib.import_module("words")

    def noun(pool):
        nouns = one_of(form for noun in pool for form in (noun.en, noun.en_plural))
        return f"{one_of(['the', 'a', 'an', 'some', 'this', 'these', 'our', 'my', *corpus.NUMBERS])} (?:{one_of(a.en for a in corpus.ADJECTIVES)} )?{nouns}"

    def verb(pool):
        return f"(?:(?:do|does) not )?{one_of(form for verb in pool for form in (verb.en, verb.en_third))}"

    action = f"(?:{verb(corpus.DEEDS)} {noun([*corpus.THINGS, *corpus.BEINGS])}|{verb(corpus.ACTIONS)}(?: {one_of(corpus.ADVERBS)})?)"
    place = f"{one_of(corpus.PREPOSITIONS)} {noun(corpus.PLACES)}"
    return re.compile(
        f"(?:{one_of(corpus.OPENINGS)} , )?{noun(corpus.BEINGS)}(?: who {action})? {action}(?: {place})? \\."
    )


def test_the_treebanks_sentences_are_as_the_corpuss(treebank):
    """Both fit the same expression and have the same words; hardly a sentence is in both."""
    with gzip.open(EXAMPLES / "corpus" / "train.en.gz", "rt", encoding="utf-8") as lines:
        corpus = lines.read().splitlines()
    with (treebank / "train.trees").open("rb") as lines:
        trees = [b" ".join(tree.words).decode() for tree in read_trees(lines, "train.trees")]
    expression = english()
    assert not [line for line in [*corpus, *trees] if not expression.fullmatch(line)]
    assert {word for line in trees for word in line.split()} == {word for line in corpus for word in line.split()}
    assert len({*trees} & {*corpus}) < 0.02 * len(trees)
    lengths = [sum(len(line.split()) for line in lines) / len(lines) for lines in (trees, corpus)]
    assert lengths[0] == pytest.approx(lengths[1], rel=0.03)


def hard_corpus(folder, *options):
    """The texts of the harder corpus, by name."""
    script = [sys.executable, EXAMPLES / "make_hard_corpus.py", folder, "--sentences", "300", "--held-out", "100"]
    subprocess.run([*script, *options], check=True)
    return {path.name: path.read_text(encoding="utf-8").splitlines() for path in folder.iterdir()}


def test_slips_are_in_the_training_translations_alone(tmp_path):
    careful, careless = hard_corpus(tmp_path / "0", "--slips", "0"), hard_corpus(tmp_path / "3", "--slips", "0.3")
    assert {name for name in careful if careful[name] != careless[name]} == {"train.fr"}
    pairs = zip(careful["train.fr"], careless["train.fr"], strict=True)
    assert 0.5 < sum(good != bad for good, bad in pairs) / 300 < 0.95


def test_the_seed_alone_decides_the_harder_corpus(tmp_path):
    one, same, other = (hard_corpus(tmp_path / f"{i}", "--seed", seed) for i, seed in enumerate("112"))
    assert one == same
    assert one["dev.en"] != other["dev.en"]


def test_a_sense_goes_with_what_it_stands_beside(tmp_path):
    """Of the right translations: every noun has one sense of `bright` beside it."""
    texts = hard_corpus(tmp_path, "--slips", "0", "--sentences", "1500")
    senses = {}
    for en, fr in zip(texts["train.en"], texts["train.fr"], strict=True):
        named = re.findall(r"\bbright (\w+)", en)
        chosen = re.findall(r"\b(brillant|vif|vive)\w*", fr)
        assert len(named) == len(chosen)
        if len(named) == 1:
            senses.setdefault(named[0], set()).add(chosen[0] == "brillant")
    assert len(senses) > 30
    assert all(len(both) == 1 for both in senses.values())


def test_the_table_and_its_ini_fit():
    with gzip.open(EXAMPLES / "phrase-table.gz") as lines:
        table = list(parse_table(lines, "phrase-table.gz"))
    assert len(table) > 50_000
    feature = MosesIni((EXAMPLES / "moses.ini").read_bytes(), "moses.ini").choose()
    assert feature.options["num-features"] == "4"
    assert (EXAMPLES / feature.options["path"]).exists()


def test_the_readmes_line_is_one_of_the_table():
    """First as it is, then with one more number."""
    before, after = [
        line for line in (ROOT / "README.md").read_text().split("\n") if line.startswith("in front of this |||")
    ]
    with gzip.open(EXAMPLES / "phrase-table.gz", "rt", encoding="utf-8") as table:
        assert before + "\n" in set(table)
    parsed = parse_line(after.encode(), "README.md", 1)
    scores = parsed.scores.rpartition(b" ")[0]
    assert after.replace(parsed.scores.decode(), scores.decode()) == before
    (shown,) = re.findall(r"# array\(\[(\S+)\]\)", (ROOT / "README.md").read_text())
    assert float(shown) == pytest.approx(math.log(float(parsed.scores.split()[-1])), abs=0.01)


@pytest.mark.parametrize(("template", "columns"), [("baseline", 4), ("rnn", 5), ("rnn-wp", 6)])
def test_the_templates_declare_their_columns(template, columns):
    ini = MosesIni((ROOT / "moses_configs" / f"{template}.ini").read_bytes(), template)
    assert len(ini.weights(ini.choose())) == columns
