"""moses-rnn-nmt score: log p of given translations, a line each."""

import gzip
import shutil

import pytest
import torch
from click.testing import CliRunner

from moses_rnn.cli import nmt_score
from moses_rnn.cli.nmt_score import score
from moses_rnn.formats.text_phrases import AlignedPhrases
from moses_rnn.models.checkpoint import load_checkpoint, save_checkpoint
from moses_rnn.producers.ensembles import open_ensemble
from moses_rnn.producers.open import open_model
from tests.commands import run
from tests.models.checkpoints import encdec_checkpoint, make_producer
from tests.producers.pairs import SOURCE, TARGET
from tests.producers.rare import ALIGNED, save_rare_model
from tests.translation.sentences import network, save_model, text

SOURCES = [b"s2 s3", b"", b"s9 s4", b"s5", b"s2 s3"]
TARGETS = [b"t2", b"t3  t3", b"", b"t9", b"t2"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_model(tmp_path / "model")
    (tmp_path / "src").write_bytes(text(SOURCES))
    (tmp_path / "trg").write_bytes(text(TARGETS))
    return tmp_path


def scored(*arguments, code=0):
    done = CliRunner().invoke(score, [*map(str, arguments)])
    assert done.exit_code == code, done.output
    return done


@pytest.mark.parametrize("at_once", [2048, 2])
def test_a_line_is_the_log_prob_of_a_pair(here, monkeypatch, at_once):
    monkeypatch.setattr(nmt_score, "LINES", at_once)
    done = scored("model", "src", "trg")
    expected = make_producer(load_checkpoint(here / "model")).log_probs(SOURCES, TARGETS)[:, 0]
    assert [float(line) for line in done.stdout.splitlines()] == pytest.approx(expected, rel=1e-6)
    assert done.stderr.endswith("5 pairs, 2 of them with <unk>\n")
    (here / "src.gz").write_bytes(gzip.compress(text(SOURCES)))
    run("nmt", "score", "model", "src.gz", "-", "-o", "out.gz", "-q", cwd=here, given=text(TARGETS).decode())
    again = gzip.decompress((here / "out.gz").read_bytes()).splitlines()
    assert [float(line) for line in again] == pytest.approx(expected, rel=1e-6)  # by chunks of other sizes


def test_several_models_score_together(here):
    shutil.copytree(here / "model", here / "copy")
    alone, both = (scored(*models, "src", "trg", "-q").stdout for models in (["model"], ["model", "copy"]))
    assert list(map(float, both.split())) == pytest.approx(list(map(float, alone.split())), rel=1e-6)
    folders = [here / "model", save_model(here / "phrases", provenance={})]
    done = scored(*folders, "src", "trg", "--combine", "mean-log", code=3)
    assert "phrases: expected the unit of " in done.stderr


@pytest.mark.parametrize("combination", ["mean-log", "arithmetic"])
def test_a_score_is_the_combinations(here, combination):
    model = network(torch.float32)
    with torch.no_grad():
        model.decoder.b_G += torch.linspace(0, 2, len(model.decoder.b_G))
    checkpoint = encdec_checkpoint(model, SOURCE, TARGET, provenance={"unit": "sentences"})
    save_checkpoint(here / "other", checkpoint)
    folders = [here / "model", here / "other"]
    expected = open_ensemble(folders, combination).make_producer().log_probs(SOURCES, TARGETS)[:, 0]
    done = scored(*folders, "src", "trg", "--combine", combination, "-q")
    assert [float(line) for line in done.stdout.splitlines()] == pytest.approx(expected, rel=1e-6)


def test_texts_of_different_length_are_refused(here):
    (here / "trg").write_bytes(text(TARGETS[:-1]))
    done = scored("model", "src", "trg", "-o", "out", code=3)
    assert "trg: expected as many lines as src has, 5, found 4\n" in done.stderr
    assert not (here / "out").exists()
    assert done.stdout == ""


def test_what_cannot_be_is_refused(here):
    assert "expected MODEL... SOURCE TARGET, found 2 of them: src trg" in scored("src", "trg", code=2).stderr
    line = ["model", "src", "trg", "--combine", "arithmetic"]
    assert "--combine needs several models, found model alone" in scored(*line, code=2).stderr
    assert "only one of SOURCE and TARGET can be -" in scored("model", "-", "-", code=2).stderr
    assert "nowhere: expected a model folder, found nothing" in scored("nowhere", "src", "trg", code=3).stderr
    (here / "out").write_text("old")
    assert "out: exists already; use --force" in scored("model", "src", "trg", "-o", "out", code=1).stderr
    assert "is the input" in scored("model", "src", "trg", "-o", "trg", "--force", code=1).stderr


@pytest.fixture
def rare(here):
    """A network of rare words, and pairs with their links."""
    for ending, texts in zip(("src", "trg", "links"), zip(*ALIGNED, strict=True), strict=True):
        (here / ending).write_bytes(text(texts))
    return save_rare_model(here / "rare")


@pytest.mark.parametrize("at_once", [2048, 2])
def test_pairs_are_annotated_by_an_alignment(rare, monkeypatch, at_once):
    monkeypatch.setattr(nmt_score, "LINES", at_once)
    done = scored("rare", "src", "trg", "--alignment", "links")
    sources, targets, links = map(list, zip(*ALIGNED, strict=True))
    expected = open_model(rare).make_producer().log_probs(AlignedPhrases(sources, lambda: links), targets)[:, 0]
    assert [float(line) for line in done.stdout.splitlines()] == pytest.approx(expected, rel=1e-5)
    assert done.stderr.endswith("5 pairs, 4 of them with <unk>\n")


def test_alignments_that_lack_or_do_not_fit_are_refused(rare, here):
    weights = (here / "rare" / "model.safetensors").rename(here / "weights")  # the model is not loaded in vain
    assert "src: expected a word alignment, by which the rare words of rare are annotated, found none" in (
        scored("rare", "src", "trg", code=3).stderr
    )
    weights.rename(here / "rare" / "model.safetensors")
    (here / "links").write_bytes(b"0-0\n0-5\n")
    assert "links:2: expected links between 2 source and 2 target words, counted from 0, found 0-5\n" in (
        scored("rare", "src", "trg", "--alignment", "links", code=3).stderr
    )
    (here / "links").write_bytes(b"0-0\n")
    assert "links: expected as many lines as there are pairs, 5, found 1\n" in (
        scored("rare", "src", "trg", "--alignment", "links", code=3).stderr
    )
    assert "--alignment is for models" in scored("model", "src", "trg", "--alignment", "links", code=2).stderr
