"""moses-rnn-nmt score: log p of given translations, a line each."""

import gzip

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
    model = network(torch.float32)
    with torch.no_grad():
        model.decoder.b_G += torch.linspace(0, 2, len(model.decoder.b_G))
    save_checkpoint(here / "other", encdec_checkpoint(model, SOURCE, TARGET, provenance={"unit": "sentences"}))
    folders = [here / "model", here / "other"]
    expected = open_ensemble(folders).make_producer().log_probs(SOURCES, TARGETS)[:, 0]
    done = scored(*folders, "src", "trg", "-q")
    assert [float(line) for line in done.stdout.splitlines()] == pytest.approx(expected, rel=1e-6)


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


def test_an_alignment_that_lacks_is_noticed_before_the_model_is_loaded(rare, here):
    (here / "rare" / "model.safetensors").unlink()
    assert "src: expected a word alignment" in scored("rare", "src", "trg", code=3).stderr
