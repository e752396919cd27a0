"""moses-rnn-cslm train: what it says, what it leaves, each network."""

import gzip
import json
from pathlib import Path

from moses_rnn.models.checkpoint import load_checkpoint
from moses_rnn.models.cslm import CSLM
from tests.cli.cslm.calls import TRAIN, cslm, sentences
from tests.producers.tiny_lm import NBSP


def test_training_says_what_it_found_and_what_it_does(prepared):
    said = (prepared / "said").read_text()
    lines = sentences(200, 1)
    assert said.startswith(f"text: 200 lines, {len(' '.join(lines).split(' ')):,} words, 15 distinct\n")
    for text in (
        "shortlist: 6 words, ",
        "held out: 20 lines\n",
        "network: 3-gram, 4 → 8 → 6 → 5, ",
        "training: adam, learning rate 0.001, dropout 0.3, 128 n-grams a minibatch, pair-mean gradient clipped at 1, fp32, seed 1; ",
        "ends after 2 epochs or 30 minutes or 10 evaluations without gain\n",
        "   n-grams  epochs      time  held-out nats  perplexity  |log Z|  tokens/s\n",
        "    2.00  ",
        "finished: 2 epochs are done; best held-out ",
        "\nnext: moses-rnn-cslm perplexity cslm train.fr\n",
        " nats per token; model in cslm\n",
    ):
        assert text in said


def test_training_leaves_a_model(prepared):
    loaded = load_checkpoint(prepared / "cslm", CSLM)
    expected = [word.encode() for word in ("le", "chat", "la", "bête", "dort", NBSP)]
    assert sorted(loaded.target_vocabulary.words) == sorted([b"<unk>", b"</s>", *expected])
    config = loaded.model.config
    assert (config.order, config.embedding_size, config.first_size, config.second_size) == (3, 4, 6, 5)
    assert loaded.provenance["texts"] == ["train.fr"]
    assert loaded.provenance["text"]["lines"] == 200


def test_the_same_command_again_says_it_is_finished(here):
    before = (here / "cslm" / "model.safetensors").read_bytes()
    code, out, messages = cslm(*TRAIN)
    assert (code, out) == (0, "")
    assert "resuming after " in messages
    assert "finished: 2 epochs are done; best held-out " in messages
    assert (here / "cslm" / "model.safetensors").read_bytes() == before


def test_several_texts_compressed_or_not_are_one(here):
    lines = (here / "train.fr").read_bytes().splitlines(keepends=True)
    (here / "a").write_bytes(b"".join(lines[:70]))
    (here / "b.gz").write_bytes(gzip.compress(b"".join(lines[70:])))
    texts = ["train", "a", "b", *TRAIN[2:]]  # `b` is found as b.gz
    assert cslm(*texts, "--model", "parts", "-q") == (0, "", "")
    weights = [(here / model / "model.safetensors").read_bytes() for model in ("cslm", "parts")]
    assert weights[0] == weights[1]
    assert json.loads((here / "parts" / "config.json").read_text())["provenance"]["texts"] == ["a", "b"]


def test_a_text_of_its_own_to_judge_by(here):
    (here / "dev.gz").write_bytes(gzip.compress((here / "dev.fr").read_bytes()))
    code, _, messages = cslm(*TRAIN, "--model", "judged", "--dev", "dev.gz")
    assert (code, "held out: " in messages) == (0, False)
    assert load_checkpoint(Path("judged"), CSLM).provenance["text"]["held_out_lines"] == 0


def test_restart_starts_over(here):
    code, _, messages = cslm(*TRAIN, "--order", "4")
    assert (code, "order 3, now 4" in messages) == (3, True)
    assert cslm(*TRAIN, "--order", "4", "--restart", "-q") == (0, "", "")
    assert load_checkpoint(here / "cslm", CSLM).model.config.order == 4
