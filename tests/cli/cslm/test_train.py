"""moses-rnn cslm train: what it says, what it leaves, each network."""

import gzip
import json
from pathlib import Path

from moses_rnn.scorers.open import open_model
from tests.cli.cslm.calls import TRAIN, cslm


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
    assert open_model(Path("judged"), of_pairs=False).provenance["text"]["held_out_lines"] == 0


def test_restart_starts_over(here):
    code, _, messages = cslm(*TRAIN, "--order", "4")
    assert (code, "order 3, now 4" in messages) == (3, True)
    assert cslm(*TRAIN, "--order", "4", "--restart", "-q") == (0, "", "")
    assert open_model(here / "cslm", of_pairs=False).config.order == 4
