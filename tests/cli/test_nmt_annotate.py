"""moses-rnn-nmt annotate: tokens in place of rare words, by counts or by a model, both texts or none."""

import pytest
from click.testing import CliRunner

from moses_rnn.cli.nmt_annotate import annotate
from moses_rnn.formats.rare_words import KINDS
from tests.producers.rare import save_rare_model
from tests.training.rare import LINES, write_aligned

TEXTS = "train", "--source", "src", "--target", "trg", "--alignment", "train.links"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_aligned(tmp_path, "train")
    return tmp_path


def annotated(*arguments, code=0):
    done = CliRunner().invoke(annotate, [*map(str, arguments)])
    assert done.exit_code == code, done.output
    return done


def lines(path):
    return path.read_bytes().split(b"\n")[:-1]


WRITTEN = {
    "noalign": (b"the dog <unk>", b"le <unk> chien"),
    "copyable": (b"the dog <unk1>", b"le <unk1> chien"),
    "posall": (b"the dog <unk>", b"le <p:0> <unk> <p:1> chien <p:-1>"),
    "posunk": (b"the dog <unk>", b"le <unk:1> chien"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_both_texts_are_annotated_line_by_line(here, kind):
    done = annotated(*(TEXTS[:-2] if kind == "noalign" else TEXTS), "--kind", kind, "-o", "new")
    texts = lines(here / "new.src"), lines(here / "new.trg")
    assert [len(text) for text in texts] == [len(LINES)] * 2
    assert (texts[0][1], texts[1][1]) == WRITTEN[kind]
    assert texts[0][3] == b""
    assert done.stderr.endswith(f"7 pairs annotated by {kind}\n")


def test_how_many_words_are_not_rare_can_be_said(here):
    annotated(*TEXTS, "-o", "new", "--source-words", 1, "--target-words", 2, "--min-count", 1, "-q")
    assert lines(here / "new.src")[0] == b"the <unk> <unk>"
    assert lines(here / "new.trg")[0] == b"le <unk:0> <unk:0>"


def test_what_a_model_does_not_know_is_rare(here):
    write_aligned(here, "dev", [(b"s2 s8", b"t8 t2", b"0-1 1-0")])
    save_rare_model(here / "model")
    annotated("dev", *TEXTS[1:-1], "dev.links", "--model", "model", "-o", "new", "-q")
    assert (lines(here / "new.src"), lines(here / "new.trg")) == ([b"s2 <unk>"], [b"<unk:1> t2"])


def test_a_model_says_how_and_which_way(here):
    write_aligned(here, "dev", [(b"t8 t2", b"s2 s8", b"0-1 1-0")])
    save_rare_model(here / "model", "copyable", direction="target-to-source")
    options = "--model", "model", "-o", "new", "-q"
    annotated("dev", *TEXTS[1:-1], "dev.links", *options)
    assert (lines(here / "new.trg"), lines(here / "new.src")) == ([b"s2 <unk1>"], [b"<unk1> t2"])


def test_for_the_other_direction_the_target_is_read(here):
    annotated(*TEXTS, "--inverse", "-o", "new", "-q")
    assert (lines(here / "new.src")[1], lines(here / "new.trg")[1]) == (b"the dog <unk:-1>", b"le <unk> chien")


def test_what_is_there_is_replaced_by_force(here):
    (here / "new.trg").write_bytes(b"mine\n")
    annotated(*TEXTS, "-o", "new", "--force")
    assert lines(here / "new.trg")[0] == b"le chat <unk:0>"
