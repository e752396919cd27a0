"""The door for networks: config.json names one, a row of NETWORKS says what to make of it."""

import gzip
import json
import math

import numpy as np
import pytest
import torch

from moses_rnn.cli import nbest, sample, score
from moses_rnn.errors import CheckpointError, MosesRnnError
from moses_rnn.formats.rare_words import RareWords
from moses_rnn.models.cells import ENCDEC_OF_CELLS
from moses_rnn.models.checkpoint import Checkpoint, save_checkpoint
from moses_rnn.models.ranker import RANKER
from moses_rnn.models.seq2seq import SEQ2SEQ
from moses_rnn.models.variants import SWITCHES
from moses_rnn.models.vocabulary import END_ID, Vocabulary
from moses_rnn.native import SWITCH, native_core
from moses_rnn.producers import open as door
from moses_rnn.producers.base import Compute, Wanted, is_unbounded
from moses_rnn.producers.open import NetworkRow, OpenModel, open_language_model, open_model
from tests.models import reference_bengio, reference_rnnlm, reference_seq2seq
from tests.models.checkpoints import bengio_checkpoint, cslm_checkpoint, encdec_checkpoint, rnnlm_checkpoint
from tests.models.networks import (
    CSLM_VOCABULARY,
    PAPERS,
    TWO_LAYERS,
    bengio_network,
    cell_network,
    cslm_network,
    encdec_network,
    ranker_network,
    rnnlm_network,
    seq2seq_network,
    weights_of,
)
from tests.producers.bigrams import BIGRAMS, BigramStepper, random_network
from tests.producers.pairs import SOURCE, TARGET, of_pairs, random_pairs
from tests.producers.rare import save_rare_model


def reference_bengio_sum(weights, ids):
    return reference_bengio.sentence_log_prob(weights, ids, 4)


def reference_rnnlm_sum(weights, ids):
    return sum(reference_rnnlm.log_probs(weights, ids))


WORDS = Vocabulary([b"<unk>", b"</s>", b"u", b"v"])
TABLE = b"a ||| u v ||| 0.5\na b ||| u v ||| 0.5\na b |||  ||| 0.5\na b ||| x ||| 0.5\n"
PAIRS = [(1, [2, 3]), (2, [2, 3]), (2, []), (2, [0])]  # source words, target ids
NBEST = b"0 ||| u v ||| LM0= -1 ||| -1 ||| 0-0=0-0 1-1=1-1 \n0 ||| u ||| LM0= -2 ||| -2 ||| 0-1=0-0 \n"


@pytest.fixture
def bigrams(tmp_path, monkeypatch):
    """A model folder of a network that has a row."""
    monkeypatch.setitem(door.NETWORKS, "bigrams", NetworkRow(BIGRAMS, "BIGRAM", "bigram network", BigramStepper))
    model = random_network(4, 4)
    source = Vocabulary([b"<unk>", b"</s>", b"a", b"b"])
    save_checkpoint(tmp_path / "model", Checkpoint(BIGRAMS, model, {"source": source, "target": WORDS}))
    monkeypatch.chdir(tmp_path)
    return model


def log_p(model, n, target):
    total, last = 0.0, END_ID
    for word in [*target, END_ID]:
        logits = [float(model.G[last, k] + n * model.b[k]) for k in range(4)]
        total += logits[word] - math.log(sum(math.exp(x) for x in logits))
        last = word
    return total


def run(main, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(list(map(str, arguments)))
    assert ended.value.code == 0


def test_a_further_network_scores_a_table(bigrams, tmp_path):
    (tmp_path / "t.gz").write_bytes(gzip.compress(TABLE))
    run(score.main, "t.gz", "--model", "model", "--log", "--quiet")
    lines = gzip.decompress((tmp_path / "t.rnn.gz").read_bytes()).splitlines()
    scores = [float(line.split(b"|||")[2].split()[-1]) for line in lines]
    np.testing.assert_allclose(scores, [log_p(bigrams, *pair) for pair in PAIRS], rtol=1e-6)
    (column,) = json.loads((tmp_path / "t.rnn.gz.json").read_text())["added_columns"]
    assert column["name"] == "BIGRAM"
    assert column["meaning"] == "log p(target | source) of the bigram network, natural, both </s> included"


def test_a_further_network_is_added_to_a_list(bigrams, tmp_path):
    (tmp_path / "list").write_bytes(NBEST)
    (tmp_path / "source").write_bytes(b"a b\n")
    run(nbest.main, "list", "--source", "source", "--add", "model", "-o", "more", "--quiet")
    values = [float(line.split(b"BIGRAM0= ")[1].split()[0]) for line in (tmp_path / "more").read_bytes().splitlines()]
    expected = [log_p(bigrams, 1, [2]) + log_p(bigrams, 1, [3]), log_p(bigrams, 2, [2])]
    np.testing.assert_allclose(values, expected, rtol=1e-5)


def test_a_further_network_is_sampled_from(bigrams, capfd):
    run(sample.main, "model", "--source", "a b", "--beam", 30, "--max-words", 2, "--top", 3, "--format", "tsv")
    rows = [line.split("\t") for line in capfd.readouterr().out.splitlines()[1:]]
    every = [[], *([i] for i in (0, 2, 3)), *([i, j] for i in (0, 2, 3) for j in (0, 2, 3))]
    best = sorted((log_p(bigrams, 2, target) for target in every), reverse=True)[:3]
    np.testing.assert_allclose([float(row[3]) for row in rows], best, atol=1e-6)


@pytest.fixture
def models(tmp_path):
    """A model folder of each kind."""
    save_checkpoint(tmp_path / "cslm", cslm_checkpoint(cslm_network(), CSLM_VOCABULARY))
    pairs = encdec_checkpoint(
        encdec_network(SWITCHES["paper"], dtype=torch.float32), SOURCE, TARGET, "target-to-source"
    )
    save_checkpoint(tmp_path / "inverse", pairs)
    lstm = seq2seq_network(dtype=torch.float32)
    network = rnnlm_network(dtype=torch.float32)
    save_checkpoint(tmp_path / "rnnlm", rnnlm_checkpoint(network, CSLM_VOCABULARY))
    network = bengio_network(dtype=torch.float32)
    save_checkpoint(tmp_path / "bengio", bengio_checkpoint(network, CSLM_VOCABULARY))
    save_checkpoint(tmp_path / "lstm", Checkpoint(SEQ2SEQ, lstm, {"source": SOURCE, "target": TARGET}))
    return tmp_path


def test_names_and_what_is_read(models):
    inverse, cslm = open_model(models / "inverse"), open_model(models / "cslm", of_pairs=False)
    assert (inverse.name, inverse.reads_sources) == ("RNNInverse", True)
    assert (cslm.name, cslm.reads_sources) == ("CSLM", False)
    names = {name: open_language_model(models / name).name for name in ("cslm", "bengio", "rnnlm")}
    assert names == {"cslm": "CSLM", "bengio": "NPLM", "rnnlm": "RNNLM"}


def test_scores_are_described_as_their_producers_do(models, tmp_path, monkeypatch):
    rare = save_rare_model(tmp_path / "rare")
    opened = [open_model(folder) for folder in (models / "inverse", models / "lstm", rare)]
    opened.append(open_language_model(models / "cslm"))
    save_checkpoint(tmp_path / "ranker", Checkpoint(RANKER, ranker_network(), {"source": SOURCE, "target": TARGET}))
    opened.append(open_model(tmp_path / "ranker"))
    producers = [model.make_producer() for model in opened]
    expected = [(producer.name, producer.meaning, is_unbounded(producer)) for producer in producers]
    assert [unbounded for *_, unbounded in expected] == [False] * 4 + [True]
    monkeypatch.setattr(OpenModel, "make_stepper", None)  # which would take memory and time
    assert [model.describe() for model in opened] == expected


def test_a_network_of_pairs_is_no_language_model(models):
    with pytest.raises(CheckpointError, match="lstm: expected a language model, found: deep LSTM\n.*moses-rnn-nmt"):
        open_language_model(models / "lstm")
    with pytest.raises(CheckpointError, match="lstm: expected a language model, found: deep LSTM"):
        open_model(models / "lstm").make_language_model()


@pytest.mark.parametrize(("name", "title"), [("bengio", "NPLM of Bengio et al."), ("rnnlm", "RNNLM"), ("cslm", "CSLM")])
def test_a_language_model_scores_no_table(models, name, title):
    expected = f"{name}: expected a network of sources and targets, found: {title}\n.*moses-rnn-cslm perplexity"
    with pytest.raises(CheckpointError, match=expected):
        open_model(models / name)


@pytest.mark.parametrize(("name", "reference"), [("bengio", reference_bengio_sum), ("rnnlm", reference_rnnlm_sum)])
def test_language_models_score_sentences(models, name, reference):
    model = open_language_model(models / name)
    sentences = [b"le chat dort", b"", b"rare le"]
    weights = weights_of(model.checkpoint.model)
    expected = [reference(weights, [*CSLM_VOCABULARY.ids(sentence.split()), END_ID]) for sentence in sentences]
    compute = model.choose_compute(Wanted(), long=False)
    assert model.make_producer(compute).log_probs([], sentences)[:, 0] == pytest.approx(expected, rel=1e-4)


def test_a_deep_lstm_scores_pairs(models):
    model = open_model(models / "lstm")
    assert (model.name, model.reads_sources) == ("LSTM", True)
    compute = model.choose_compute(Wanted(), long=False)
    assert not compute.native
    weights, some = weights_of(model.checkpoint.model), random_pairs(40)
    for (source, target), (value,) in zip(some, of_pairs(model.make_producer(compute), some), strict=True):
        ids = [*SOURCE.ids(source.split()), END_ID], [*TARGET.ids(target.split()), END_ID]
        assert value == pytest.approx(reference_seq2seq.log_prob(weights, *ids, TWO_LAYERS), rel=1e-4)


def test_another_cell_is_computed_by_torch_which_says_so(tmp_path, capfd):
    checkpoint = Checkpoint(ENCDEC_OF_CELLS, cell_network(PAPERS["lstm"]), {"source": SOURCE, "target": TARGET})
    save_checkpoint(tmp_path / "cells", checkpoint)
    model = open_model(tmp_path / "cells")
    assert (model.name, model.title) == ("RNN", "RNN Encoder-Decoder of lstm cells")
    assert not model.choose_compute(Wanted(), long=False).native
    with pytest.raises(MosesRnnError, match="--native: expected .* RNN Encoder-Decoder of lstm cells, fp32 and cpu"):
        model.choose_compute(Wanted(native=True), long=False)
    (tmp_path / "t.gz").write_bytes(gzip.compress(b"a ||| u ||| 0.5\n"))
    run(score.main, tmp_path / "t.gz", "--model", tmp_path / "cells", "--allow-misfit")
    assert "computed by: torch, fp32" in "".join(capfd.readouterr())
    (column,) = json.loads((tmp_path / "t.rnn.gz.json").read_text())["added_columns"]
    assert "of the RNN Encoder-Decoder of lstm cells" in column["meaning"]


REFUSED = {
    "direction": (
        {"direction": "source-to-target"},
        "inverse",
        "expected a model of direction source-to-target, found",
    ),
    "not there": ({}, "nothing", "nothing: expected a model folder, found nothing"),
}


@pytest.mark.parametrize(("options", "folder", "message"), REFUSED.values(), ids=REFUSED)
def test_refuses(models, options, folder, message):
    with pytest.raises(CheckpointError, match=message):
        open_model(models / folder, **options)


def test_a_network_that_nobody_knows_is_named(models):
    config = models / "cslm" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "network": "magic"}))
    with pytest.raises(
        CheckpointError,
        match="expected network to be bengio or cslm or cstm or encdec or ranker or rnnlm or rnnsearch or seq2seq, found 'magic'",
    ):
        open_model(models / "cslm", of_pairs=False)


def test_without_the_native_core_what_needs_it_is_refused(models, monkeypatch):
    monkeypatch.setenv(SWITCH, "0")
    model = open_model(models / "inverse")
    assert not model.choose_compute(Wanted(), long=False).native
    with pytest.raises(
        MosesRnnError, match="--native: expected the native core, .* found no native core, RNN .*, fp32 and cpu"
    ):
        model.choose_compute(Wanted(native=True), long=False)
    with pytest.raises(MosesRnnError, match="--precision bf16x3: .* found no native core and device cpu"):
        model.choose_compute(Wanted(precision="bf16x3"), long=False)
    with pytest.raises(MosesRnnError, match="inverse: expected the native core to compute it, found none"):
        model.make_producer(Compute(native=True))


@pytest.mark.skipif(native_core() is None, reason="the native core was not built, or is switched off")
def test_the_native_core_computes_unless_something_else_is_wanted(models, monkeypatch):
    model = open_model(models / "inverse")
    assert model.choose_compute(Wanted(), long=False) == Compute(native=True)
    assert model.choose_compute(Wanted(native=False), long=False) == Compute()
    assert model.choose_compute(Wanted(precision="fp64"), long=False) == Compute(precision="fp64")
    assert not open_model(models / "cslm", of_pairs=False).choose_compute(Wanted(), long=False).native
    with pytest.raises(MosesRnnError, match="--native: .* found native core, .* CSLM, fp32 and cpu"):
        open_model(models / "cslm", of_pairs=False).choose_compute(Wanted(native=True), long=False)
    monkeypatch.setenv(SWITCH, "avx2")
    assert model.choose_compute(Wanted(precision="bf16"), long=False) == Compute(precision="bf16")


def test_a_network_of_targets_alone_does_not_write(models):
    model = open_model(models / "cslm", of_pairs=False)
    with pytest.raises(CheckpointError, match="cslm: expected a network that writes, found: CSLM"):
        model.make_stepper(door.HERE)


def test_rare_words_are_annotated_as_the_config_says(tmp_path):
    folder = save_rare_model(tmp_path / "m")
    model = open_model(folder)
    assert model.rare == RareWords("posunk", 2)
    assert door.needs_alignments(folder)
    assert not door.needs_alignments(save_rare_model(tmp_path / "none", "noalign"))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"rare": {"kind": "luong", "window": 7}}))
    with pytest.raises(CheckpointError, match=r"m: rare: expected a kind of noalign, .*, posunk, found 'luong'"):
        open_model(folder)
