"""moses-rnn nbest add: features, from list to list on disk or through pipes."""

import gzip

import pytest

from tests.cli.nbest.lists import LISTED, SOURCE
from tests.models.tiny_lm import BackoffModel


def test_inputs_may_be_compressed_and_named_without_their_suffix(nbest, here):
    plain = nbest("add", "n", "--source", "src", "--word-penalty", "{}/words").stdout
    for name in ("n", "src"):
        (here / f"{name}.gz").write_bytes(gzip.compress((here / name).read_bytes()))
        (here / name).unlink()
    assert nbest("add", "n", "--source", "src", "--word-penalty", "{}/words").stdout == plain
    again = nbest("add", "n", "--source", "-", "--word-penalty", "{}/words", given=SOURCE.replace(b"\n", b"\r\n"))
    assert again.stdout == plain


def test_an_n_gram_model_may_be_named_without_its_suffix(nbest, here):
    pytest.importorskip("kenlm")
    (here / "lm.gz").write_bytes(
        gzip.compress(BackoffModel({"</s>": 0.5, "t2": 0.25, "<unk>": 0.25}, {("t2",): {"</s>": 0.5}}).arpa())
    )
    assert (
        nbest("add", "n", "--add", "lm", "--allow-misfit").stdout
        == nbest("add", "n", "--add", "lm.gz", "--allow-misfit").stdout
    )


def test_unknown_words_are_those_of_the_hypotheses_language(nbest, here):
    (here / "one").write_bytes(b"0 ||| s2 ||| LM0= 1 ||| 1\n0 ||| t2 ||| LM0= 2 ||| 1\n")
    done = nbest("add", "one", "--word-penalty", "{}/inverse")
    assert done.stdout == b"0 ||| s2 ||| LM0= 1 WP0= 0 ||| 1\n0 ||| t2 ||| LM0= 2 WP0= -1 ||| 1\n"


def test_a_feature_that_can_choose_nothing_is_a_warning(nbest, here):
    (here / "one").write_bytes(b"0 ||| t2 ||| LM0= 1 ||| 1\n0 ||| t3 ||| LM0= 2 ||| 1\n")
    done = nbest("add", "one", "--source", "src", "--word-penalty", "{}/words")
    assert done.stderr == (
        "2 hypotheses of 1 sentence, with WP0\n"
        "warning: WP0 is the same for all hypotheses of each sentence: leave it out, because tuning cannot use it\n"
    )


@pytest.mark.parametrize("command", ["add", "tune", "rerank"])
def test_what_is_there_is_replaced_by_force(nbest, here, more, command):
    arguments = {
        "add": ["n", "--source", "src", "--word-penalty", "{}/words"],
        "tune": ["more", "--reference", "ref"],
        "rerank": ["more", "w.ini"],
    }[command]
    (here / "out").write_text("old")
    assert nbest(command, *arguments, "-o", "out", "--force").stdout == b""
    assert (here / "out").read_bytes() == nbest(command, *arguments).stdout


def test_several_networks_of_sentences_are_one_feature(nbest):
    """Two equal members are one of them; what they learned from decides that hypotheses are scored whole."""
    alone = nbest("add", "n", "--source", "src", "--add", "{}/search").stdout
    together = nbest("add", "n", "--source", "src", "--ensemble", "{}/search,{}/search", "--combine", "mean-log").stdout
    assert alone.count(b"SEARCH0= ") == len(LISTED)
    assert together == alone.replace(b"SEARCH0=", b"ENS0=")
