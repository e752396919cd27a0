"""Pretrained models in lists, tables, pairs and the API: the same scores, and what is refused."""

import gzip
import itertools
import math

import pytest
from safetensors.torch import load_file, save_file

import moses_rnn
from moses_rnn.models.pretrained import open_pretrained
from moses_rnn.options import PretrainedOptions
from moses_rnn.table.table_blocks import Pairs
from tests.cli.test_reranker import INI, MADE
from tests.commands import ROOT, run, zygote
from tests.models.hugging_face import save_m2m, save_marian
from tests.nbest.stub_moses import put_stub

FRENCH = "--source-language", "en", "--target-language", "fr"
SOURCES = "the small man", "in front of the woman"
LISTED = [
    (0, "le petit homme"),
    (0, "l&apos; homme"),
    (1, "devant la femme"),
    (1, "la femme &amp; le"),
    (1, "la femme"),
]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hf")
    save_marian(folder / "marian")
    save_m2m(folder / "m2m")
    return folder


@pytest.fixture
def here(tmp_path, models, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "hf").symlink_to(models)
    (tmp_path / "src").write_text("".join(f"{line}\n" for line in SOURCES))
    (tmp_path / "list").write_text("".join(f"{i} ||| {text}  ||| LM0= -1 ||| -1\n" for i, text in LISTED))
    return tmp_path


def scores(model, pairs):
    options = PretrainedOptions(source_language="en", target_language="fr")
    lines = [(source.encode(), target.encode()) for source, target in pairs]
    return open_pretrained(f"hf:{model}", options).make_scorer().log_probs(Pairs.of(lines))


def test_lists_get_features_of_pretrained_models(here, models):
    given = itertools.chain(*(("--add", f"hf:hf/{name}") for name in ("marian", "m2m")))
    done = run("nbest", "add", "list", "--source", "src", *given, *FRENCH)
    pairs = [(SOURCES[i], text) for i, text in LISTED]
    features = [line.split(" ||| ")[2].split() for line in done.stdout.splitlines()]
    assert [row[2::2] for row in features] == [["HF0=", "HF1="]] * len(pairs)
    for column, name in ((3, "marian"), (5, "m2m")):
        found = [float(row[column]) for row in features]
        assert found == pytest.approx(scores(models / name, pairs), rel=1e-4)


def test_tables_get_columns_of_pretrained_models(here, models):
    with gzip.open(ROOT / "examples" / "phrase-table.gz", "rt", encoding="utf-8") as lines:
        rows = list(itertools.islice(lines, 200))
    (here / "table").write_text("".join(rows))
    options = "--model", "hf:hf/marian", "-o", "new", "--floor", "-300"
    run("score", "table", *options, "--quiet")
    pairs = [tuple(row.split(" ||| ")[:2]) for row in rows]
    found = [math.log(float(line.split(" ||| ")[2].split()[-1])) for line in (here / "new").read_text().splitlines()]
    assert found == pytest.approx(scores(models / "marian", pairs), abs=1e-4)
    again = run("score", "table", *options, "--pretrained-text", "raw", "--resume", check=False)
    assert again.returncode == 1
    assert "already exists, and its signature differs in added columns" in again.stderr


def test_pairs_get_a_column_of_a_pretrained_model(here, models):
    (here / "pairs.tsv").write_text("".join(f"{SOURCES[i]}\t{text}\n" for i, text in LISTED))
    done = run("score", "pairs.tsv", "--format", "tsv", "--model", "hf:hf/m2m", *FRENCH, "-o", "-", "--quiet")
    found = [float(line.split("\t")[2]) for line in done.stdout.splitlines()]
    assert found == pytest.approx(scores(models / "m2m", [(SOURCES[i], text) for i, text in LISTED]), abs=1e-4)


def test_python_scores_with_a_pretrained_model(models):
    pairs = [(SOURCES[i], text) for i, text in LISTED]
    model = moses_rnn.load(f"hf:{models / 'm2m'}", device="cpu", source_language="en", target_language="fr")
    assert model.score(pairs) == pytest.approx(scores(models / "m2m", pairs), abs=1e-4)
    assert model.name == "HF"
    with pytest.raises(moses_rnn.CheckpointError, match="expected a network that writes word by word"):
        model.translate(["the man"])
    with pytest.raises(moses_rnn.ArgumentError, match="pretrained_text: expected one of detokenised, tokenised, raw"):
        moses_rnn.load(f"hf:{models / 'm2m'}", pretrained_text="words")
    with pytest.raises(moses_rnn.CheckpointError, match="expected a network that writes word by word"):
        moses_rnn.load([f"hf:{models / 'marian'}"] * 2)


def test_a_reranker_of_a_pretrained_model_is_built_and_translates(here, models, monkeypatch):
    monkeypatch.delenv("MOSES_ROOT", raising=False)
    for name, text in (("moses.ini", INI), ("lm.arpa", "none"), ("dev.fr", "le petit homme\nla femme\n")):
        (here / name).write_text(text)
    (here / "src").rename(here / "dev.en")
    train = "reranker", *MADE, "--lists", "list", "--add", "hf:hf/m2m"
    refused = zygote(*train)
    assert "expected --source-language to be a language of the model, found none" in refused.stderr
    assert refused.returncode == 3
    assert zygote(*train, *FRENCH).returncode == 0
    put_stub(here)
    monkeypatch.setenv("MOSES_ROOT", str(here / "moses"))
    text = b"s2 s3\n" + b"s2 " * 70
    done = zygote("reranker", "translate", "made", "--n-best", 9, "best", given=text)
    assert done.returncode == 0, done.stderr
    assert "line 2: HF0, line 1 of the list: HF: expected 1 to 64 pieces of words, found " in done.stderr
    listed = [line.split(" ||| ") for line in (here / "best").read_text().splitlines() if line.startswith("0")]
    assert done.stdout.decode().split("\n")[0].split() == listed[0][1].split()
    found = [float(fields[2].split("HF0= ")[1].split()[0]) for fields in listed]
    expected = scores(models / "m2m", [("s2 s3", fields[1].strip()) for fields in listed])
    assert found == pytest.approx(expected, rel=1e-4)


def spoil(folder):
    """Save a model with weights that lead to no number."""
    save_marian(folder)
    tensors = load_file(folder / "model.safetensors")
    tensors["model.shared.weight"] *= 1e30
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


@pytest.mark.parametrize(("model", "found"), [
    ("hf/none", "hf:hf/none: expected a folder, or a model in Hugging Face's cache or on its site"),
    ("hf/m2m", "expected --source-language to be a language of the model, found none"),
    ("hf/marian", "HF0, line 2 of the list: HF: expected 1 to 64 pieces of words, found "),
    ("bad", "of the list: HF: expected a log-probability, found nan"),
])  # fmt: skip
def test_a_model_or_line_that_gives_no_score_is_refused(here, model, found):
    spoil(here / "bad")
    long = 70 if model == "hf/marian" else 1
    (here / "list").write_text(f"0 ||| le  ||| LM0= -1 ||| -1\n1 ||| {'le ' * long} ||| LM0= -1 ||| -1\n")
    done = run("nbest", "add", "list", "--source", "src", "--add", f"hf:{model}", "-o", "new", check=False)
    assert found in done.stderr
    assert (done.returncode, (here / "new").exists()) == (3, False)


def test_options_that_a_pretrained_model_lacks_are_refused(here):
    done = run("score", "list", "--model", "hf:hf/marian", "--word-penalty", "-o", "new", check=False)
    assert done.returncode == 2
    done = run("nbest", "add", "list", "--source", "src", "--ensemble", "hf:hf/marian,hf:hf/m2m", check=False)
    assert done.returncode == 2
    assert "give it with --add" in done.stderr
