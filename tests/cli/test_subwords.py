"""A network of subwords through the commands: everything outside the model folder is in words."""

import gzip
import json
import re
import shutil
from html import unescape

import numpy as np
import pytest

import moses_rnn
from moses_rnn.moses.nbest import parse_nbest
from tests.commands import run, settings
from tests.conftest import EXAMPLES
from tests.models.tiny_lm import SMALL

SIZES = ["--hidden-size", 16, "--embedding-size", 12, "--batch-size", 16, "--learning-rate", 0.02, "--dropout", 0]
TRAIN = ["train", "--source", "en", "--target", "fr", "--dev", "dev", "--model", "m", *SIZES, "--threads", 1]


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """Texts of the example, a network of their subwords, a list and the beginning of a table."""
    folder = tmp_path_factory.mktemp("subwords")
    for side in ("en", "fr"):
        lines = gzip.decompress((EXAMPLES / "corpus" / f"train.{side}.gz").read_bytes()).splitlines(keepends=True)
        (folder / f"train.{side}").write_bytes(b"".join(lines[:1000]))
        (folder / f"dev.{side}").write_bytes(b"".join(lines[1000:1020]))
    table = gzip.decompress((EXAMPLES / "phrase-table.gz").read_bytes()).splitlines(keepends=True)
    (folder / "table").write_bytes(b"".join(table[::500]))
    french = (folder / "dev.fr").read_text().splitlines()
    hypotheses = [(i, french[j]) for i in range(20) for j in (i, (i + 1) % 20)]
    (folder / "list").write_text("".join(f"{i} ||| {text} ||| LM0= -1 ||| -1\n" for i, text in hypotheses))
    sizes = settings(folder, alignment_size=8, maxout_size=8)
    done = run("nmt train", *TRAIN, *sizes, "--subwords", 120, "--max-epochs", 2, cwd=folder)
    assert "read: 120 subwords for 236 words, 100.00% of running words" in done.stderr
    return folder


@pytest.fixture
def loaded(here):
    return moses_rnn.load(here / "m", device="cpu")


def test_the_model_says_that_it_is_of_subwords(here, loaded):
    config = json.loads((here / "m" / "config.json").read_text())
    assert config["subwords"] is True
    assert "subwords.model" in config["files"]
    pieces = (here / "m" / "source.vocab").read_text().splitlines()
    assert pieces == (here / "m" / "target.vocab").read_text().splitlines()
    assert (pieces[:2], len(pieces), "▁" in pieces) == (["<unk>", "</s>"], 120, True)
    assert "120 and 120 subwords" in repr(loaded)


def test_lists_get_a_feature(here, loaded):
    done = run("nbest add", "list", "--source", "dev.en", "--add", "m", "--word-penalty", "m", "-o", "more", cwd=here)
    assert "SEARCH0: 0.0% of the hypothesis words are outside" in done.stderr
    with (here / "more").open("rb") as lines:
        found = [
            (line.sentence, line.hypothesis.decode(), line.features.split()) for line in parse_nbest(lines, "more")
        ]
    sources = (here / "dev.en").read_text().splitlines()
    scores = loaded.score([(sources[i], hypothesis) for i, hypothesis, _ in found])
    values = [dict(zip(features[::2], map(float, features[1::2]), strict=True)) for _, _, features in found]
    np.testing.assert_allclose([one[b"SEARCH0="] for one in values], scores, rtol=1e-4)
    assert [one[b"WP0="] for one in values] == [0] * len(values)
    (here / "strange").write_text("0 ||| ελληνικά κι άλλα ||| LM0= -1 ||| -1\n" * 20)
    done = run("nbest add", "strange", "--source", "dev.en", "--add", "m", "-o", "x", cwd=here, check=False)
    assert (done.returncode, "expected a list" in done.stderr) == (3, True)


def test_tables_get_a_column_and_must_fit(here, loaded):
    run("score", "table", "--model", "m", "-o", "scored", cwd=here)
    lines = [line.split(" ||| ") for line in (here / "scored").read_text().splitlines()]
    scores = loaded.score([(source, target) for source, target, *_ in lines])
    np.testing.assert_allclose(np.log([float(line[2].split()[-1]) for line in lines]), scores, rtol=1e-4)
    signature = json.loads((here / "scored.json").read_text())
    assert signature["added_columns"][0]["meaning"].endswith("; words are cut into subwords, in one way each")
    assert "subwords.model" in signature["models"][0]["sha256"]
    (here / "strange").write_text("ελληνικά ||| κι άλλα ||| 0.5\n" * 20)
    done = run("score", "strange", "--model", "m", "-o", "x", cwd=here, check=False)
    assert (done.returncode, "strange: expected a table" in done.stderr) == (3, True), done.stderr
    pairs = "".join(f"{source}\t{target}\n" for source, target, *_ in lines)
    run("score", "-", "--format", "tsv", "--model", "m", "-o", "pairs", cwd=here, given=pairs)
    pairs = [float(line.split("\t")[-1]) for line in (here / "pairs").read_text().splitlines()]
    np.testing.assert_allclose(pairs, scores, rtol=1e-4)


def test_translations_are_words_linked_to_words(here, loaded):
    (here / "in").write_bytes((here / "dev.en").read_bytes() + b"ell ellen\n\n")
    options = "--n-best", 5, "many", "--alignments", "looks", "--unknown", "copy", "-o", "out"
    run("nmt translate", "in", "--model", "m", *options, cwd=here)
    out = (here / "out").read_text().splitlines()
    assert "▁" not in "".join(out)
    assert {*" ".join(out).split()} & {*(here / "train.fr").read_text().split()}
    with (here / "many").open("rb") as lines:
        found = list(parse_nbest(lines, "many"))
    texts = [(line.sentence, line.hypothesis) for line in found]
    assert len(texts) == len({*texts}) > 60
    sources = (here / "in").read_text().splitlines()
    for line in found:
        for link in line.line.rstrip().rsplit(b"|||", 1)[1].split():
            source, target = map(int, link.split(b"-"))
            assert (source < len(sources[line.sentence].split()), target < len(line.hypothesis.split())) == (True, True)
    for record in map(json.loads, (here / "looks").read_text().splitlines()):
        assert record["source"] == sources[record["line"] - 1].split()
        alpha = np.array(record["alpha"])
        if record["source"]:
            assert alpha.shape == (len(record["target"]) + 1, len(record["source"]) + 1)
            np.testing.assert_allclose(alpha.sum(1), 1, atol=1e-2)
    shown = run("analyse map", "alignments", "dev.en", "dev.fr", "--model", "m", "--line", 2, cwd=here).stdout
    given = (here / "dev.fr").read_text().splitlines()[1].split()
    assert [line.split()[0] for line in shown.splitlines()[1:]][-len(given) - 1 :] == [*map(unescape, given), "</s>"]
    assert [one.hypotheses[0].text for one in loaded.translate(sources[:3], unknown="copy")] == out[:3]


def test_an_explanation_is_word_by_word(loaded):
    explained = loaded.explain("the dog .", "le chien .")
    assert [word.word for word in explained.words] == ["le", "chien", ".", "</s>"]
    assert sum(word.log_prob for word in explained.words) == pytest.approx(explained.log_prob, rel=1e-5)
    assert loaded.explain("the ελ .", "le chien .").unknown == ["ελ"]


def test_samples_have_the_scores_of_their_words(loaded):
    (drawn,) = loaded.sample(["the dog ."], 20)
    scores = loaded.score([("the dog .", sample.text) for sample in drawn])
    assert [sample.log_prob for sample in drawn] == pytest.approx(scores.tolist(), rel=1e-4)


@pytest.fixture(scope="module")
def language_model(here):
    sizes = "--hidden-size", 12, "--batch-size", 16, "--learning-rate", 0.02, "--optimiser", "adam"
    options = "--network", "rnnlm", "--dev", "dev.fr", "--model", "lm", *sizes, "--max-epochs", 2, "--threads", 1
    done = run("cslm train", "train.fr", *options, "--subwords", 80, cwd=here)
    assert "written: 80 subwords, 100.00% of running words" in done.stderr
    return moses_rnn.load_language_model(here / "lm", device="cpu")


def test_a_language_model_gives_words_probabilities(here, language_model):
    assert "words are cut into subwords, in one way each; 80 subwords" in repr(language_model)
    lines = (here / "dev.fr").read_text().splitlines()
    tokens = [len(line.split()) + 1 for line in lines]
    scores = language_model.score(lines)
    for line, count, score in zip(lines, tokens, scores, strict=True):
        of_words = language_model.word_scores(line)
        assert (len(of_words), of_words.max() < 0) == (count, True)
        assert of_words.sum() == pytest.approx(score)
    for how in ([], ["--dynamic", "sentence", "--dynamic-rate", 0]):
        done = run("cslm perplexity", "dev.fr", "--model", "lm", *how, "--threads", 1, cwd=here)
        (found,) = re.findall(r"^\| lm \(.*\) \| (.*) \|$", done.stdout, re.M)
        assert float(found) == pytest.approx(np.exp(-scores.sum() / sum(tokens)), rel=1e-4)
        assert f"dev.fr: {sum(tokens)} tokens, 0.00% outside a shortlist" in done.stdout
    assert language_model.word_scores("le ελ")[1] == pytest.approx(language_model.word_scores("le <unk>")[1])
    run("nbest add", "list", "--source", "dev.en", "--add", "lm", "-o", "with-lm", cwd=here)
    with (here / "with-lm").open("rb") as found:
        for line in parse_nbest(found, "with-lm"):
            expected = language_model.score([line.hypothesis.decode()])[0]
            assert float(line.features.split()[-1]) == pytest.approx(expected, rel=1e-4)


REFUSED_LM = {
    "cslm perplexity dev.fr --model lm --lm n.arpa": "lm: expected a language model of words, found one of subwords",
    "cslm perplexity dev.fr --model lm --rare uniform": "lm: expected a language model of words",
    "nbest add list --source dev.en --add lm --backoff n.arpa -o x": "lm: expected a language model of words",
    "cslm export-nplm x --model lm --dev dev.fr": "lm: expected a CSLM of words, the network that NeuralLM computes",
    "cslm train train.fr --model new --subwords 9": "subwords: expected at least",
    "cslm train train.fr --model new --subwords 99 --shortlist 9": "--subwords: does not go with --shortlist",
}


@pytest.mark.parametrize("line", REFUSED_LM)
@pytest.mark.usefixtures("language_model")
def test_what_needs_a_language_model_of_words_is_refused(here, line):
    (here / "n.arpa").write_bytes(SMALL.arpa())
    command = " ".join(line.split()[:2])
    done = run(command, *line.removeprefix(command).split(), cwd=here, check=False)
    assert (done.returncode in (2, 3), REFUSED_LM[line] in done.stderr) == (True, True), done.stderr
    assert not ({"x", "new"} & {path.name for path in here.iterdir()})


REFUSED = {
    "nmt translate dev.en --model m --candidates 3 3 --dictionary words": "expected a model of words for --candidates",
    "extend table --model m --text dev.en": "expected a model of plain words, found one of subwords",
    "nmt train train --source en --target fr --model new --subwords 9": "subwords: expected at least",
}


@pytest.mark.parametrize("line", REFUSED)
def test_what_needs_a_shortlist_of_words_is_refused(here, line):
    (here / "words").write_text("dog chien 1\n")
    command = "extend" if line.startswith("extend") else " ".join(line.split()[:2])
    done = run(command, *line.removeprefix(command).split(), cwd=here, check=False)
    assert (done.returncode, REFUSED[line] in done.stderr) == (3, True), done.stderr
    assert not (here / "new").exists()


@pytest.mark.parametrize("option", ["--rare noalign", "--source-words 9", "--target-words 9"])
def test_options_of_shortlists_are_refused(here, option):
    done = run("nmt train", *TRAIN, "--subwords", 99, *option.split(), cwd=here, check=False)
    assert done.returncode == 2
    assert f"--subwords: does not go with {option.split()[0]}" in done.stderr


def test_a_damaged_segmentation_is_refused(here, tmp_path):
    shutil.copytree(here / "m", tmp_path / "m")
    (tmp_path / "m" / "subwords.model").write_bytes(b"\n")
    done = run("score", here / "table", "--model", "m", "-o", "x", cwd=tmp_path, check=False)
    assert (done.returncode, "m/subwords.model: expected SHA-256" in done.stderr) == (3, True)
    (tmp_path / "m" / "subwords.model").unlink()
    done = run("score", here / "table", "--model", "m", "-o", "x", cwd=tmp_path, check=False)
    assert (done.returncode, "m/subwords.model: expected a file of a model folder" in done.stderr) == (3, True)
