"""What can be chosen about the network of a table, and a CSTM from a table to its scores."""

import gzip
import json

import numpy as np
import pytest

from moses_rnn.cli import nbest, score
from moses_rnn.models.checkpoint import load_checkpoint
from moses_rnn.models.cstm import CSTM
from moses_rnn.models.ranker import RANKER as RANKER_KIND
from moses_rnn.producers.open import open_model
from moses_rnn.training.architectures import ARCHITECTURES, check_network, longest, slotted_network
from moses_rnn.training.run import plan_of, train_phrase_model
from tests.training.small import never, phrase_request
from tests.training.texts import Listener

NO_SIZES = {"hidden_size": None, "embedding_size": None, "maxout_size": None, "output_rank": None}
SMALL = {**NO_SIZES, "architecture": "cstm", "embedding_size": 4, "first_size": 6, "second_size": 5, "max_length": 0}
RANKER = {**NO_SIZES, "architecture": "ranker", "hidden_size": 16, "embedding_size": 8, "max_length": 0}


def test_sizes_of_a_cstm():
    assert slotted_network(phrase_request("t", **NO_SIZES, architecture="cstm")) == {
        "slots": 7,
        "embedding_size": 128,
        "first_size": 512,
        "second_size": 256,
    }
    assert slotted_network(phrase_request("t", **SMALL, slots=3))["slots"] == 3
    assert longest(phrase_request("t", **SMALL)) == 7
    assert longest(phrase_request("t", **{**SMALL, "max_length": 2})) == 2
    assert longest(phrase_request("t", max_length=0)) == 0


def test_sizes_of_a_ranker():
    given = {**NO_SIZES, "architecture": "ranker"}
    sizes = {"slots": 7, "embedding_size": 64, "hidden_size": 256}
    assert slotted_network(phrase_request("t", **given)) == {**sizes, "corrupt": "last"}
    assert slotted_network(phrase_request("t", **given, corrupt="any", slots=3))["corrupt"] == "any"
    plan = plan_of(phrase_request("t", **RANKER, slots=3))
    assert (plan.kind, plan.training.initial_deviation, plan.corpus.max_length) == (RANKER_KIND, 0.1, 3)


def test_it_begins_as_its_preset_says_and_its_pairs_have_slots():
    plan = plan_of(phrase_request("t", **SMALL, slots=3))
    assert (plan.kind, plan.training.initial_deviation, plan.corpus.max_length) == (CSTM, 0.1, 3)
    assert plan_of(phrase_request("t", **{**SMALL, "preset": "paper"})).training.initial_deviation == 0.01
    assert plan_of(phrase_request("t", **SMALL, initial_deviation=0.2)).training.initial_deviation == 0.2
    assert ARCHITECTURES[0] == "encdec"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"slots": 3}, "--slots: --architecture encdec"),
        ({"first_size": 3}, "--first-size: --architecture encdec"),
        ({**SMALL, "hidden_size": 3}, "--hidden-size: --architecture cstm"),
        ({**SMALL, "summary": "last"}, "--summary: --architecture cstm"),
        ({**SMALL, "variant": "groundhog"}, "--variant: --architecture cstm"),
        ({**SMALL, "cell": "lstm"}, "--cell: --architecture cstm"),
        ({**SMALL, "corrupt": "any"}, "--corrupt: --architecture cstm"),
        ({**RANKER, "first_size": 3}, "--first-size: --architecture ranker"),
        ({**RANKER, "sampled_words": 3}, "--sampled-words: --architecture ranker"),
        ({**RANKER, "output_rank": 3}, "--output-rank: --architecture ranker"),
        ({**RANKER, "slots": 3, "max_length": 4}, "--max-length: expected at most the 3 slots of the network, found 4"),
        ({**SMALL, "max_length": 8}, "--max-length: expected at most the 7 slots of the network, found 8"),
        ({"cell": "tanh", "decoder_reset": "after"}, "--decoder-reset: --cell tanh"),
    ],
)
def test_what_a_network_does_not_have_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        check_network(phrase_request("t", **given))


def test_what_it_has_is_not():
    check_network(phrase_request("t"))
    check_network(phrase_request("t", **SMALL, slots=9, sampled_words=9))
    check_network(phrase_request("t", **RANKER, slots=9, corrupt="any"))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A CSTM that learned a table with some phrases too long for it."""
    here = tmp_path_factory.mktemp("cstm")
    lines = [b"s%d s%d ||| t%d t%d ||| 0.5 ||| 0-0\n" % (i % 13, i % 5, i % 13, i % 5) for i in range(90)]
    lines += [b"s0 s1 s2 s3 ||| t1 ||| 0.5 ||| 0-0\n", b"s0 ||| t1 t2 t3 t4 ||| 0.5 ||| 0-0\n"]
    (here / "table").write_bytes(b"".join(lines))
    learning = {"learning_rate": 0.02, "batch_size": 8, "max_epochs": 80, "patience": 99}
    listener = Listener()
    outcome = train_phrase_model(
        phrase_request(here / "table", **SMALL, slots=3, **learning), here / "m", listener, never
    )
    assert outcome.progress.history[-1]["nats_per_token"] < 0.8 * outcome.rival_cost
    assert any("2 pairs longer than --max-length" in line for line in listener.description)
    return here / "m"


def run(main, *arguments, code=0):
    with pytest.raises(SystemExit) as ended:
        main(list(map(str, arguments)))
    assert ended.value.code == code


TABLE = b"s1 s2 ||| t1 t2 ||| 0.5\ns1 s2 ||| t3 t2 ||| 0.5\ns1 s1 s1 s1 ||| t1 ||| 0.5\n"


def test_it_is_a_column_of_a_table(model, tmp_path, capfd):
    checkpoint = load_checkpoint(model, CSTM)
    assert (checkpoint.unit, checkpoint.model.config.slots) == ("phrases", 3)
    (tmp_path / "t.gz").write_bytes(gzip.compress(TABLE))
    options = tmp_path / "t.gz", "--model", model, "--log", "--allow-misfit"
    run(score.main, *options, code=3)
    message = capfd.readouterr().err
    assert "t.gz:3: expected phrases of at most 3 words, for which the network has slots, found 4" in message
    assert "'s1 s1 s1 s1 ||| t1'" in message
    assert "--long floor gives them the smallest score" in message
    run(score.main, *options, "--long", "floor", "--force")
    assert "computed by: torch, fp32" in "".join(capfd.readouterr())
    lines = gzip.decompress((tmp_path / "t.rnn.gz").read_bytes()).splitlines()
    values = [float(line.split(b"|||")[2].split()[-1]) for line in lines]
    expected = open_model(model).make_producer().log_probs([b"s1 s2"] * 2, [b"t1 t2", b"t3 t2"])[:, 0]
    np.testing.assert_allclose(values, [*expected, -87], rtol=1e-6)
    assert values[0] > values[1]
    (column,) = json.loads((tmp_path / "t.rnn.gz.json").read_text())["added_columns"]
    assert column["name"] == "CSTM"
    assert column["meaning"].endswith(
        "log p(target | source) of the CSTM, natural, its </s> included where it has a slot"
    )


def test_it_is_a_feature_of_a_list(model, tmp_path, capfd):
    (tmp_path / "list").write_bytes(
        b"0 ||| t1 t2 t4 ||| LM0= -1 ||| -1 ||| 0-1=0-1 2-2=2-2 \n0 ||| t1 ||| LM0= -2 ||| -2 ||| 0-2=0-0 \n"
    )
    (tmp_path / "source").write_bytes(b"s1 s2 s4\n")
    options = tmp_path / "list", "--source", tmp_path / "source", "--add", model, "-o", tmp_path / "new", "--quiet"
    run(nbest.main, *options, "--allow-misfit")
    lines = (tmp_path / "new").read_bytes().splitlines()
    values = [float(line.split(b"CSTM0= ")[1].split()[0]) for line in lines]
    pairs = [b"s1 s2", b"s4", b"s1 s2 s4"], [b"t1 t2", b"t4", b"t1"]
    first, second, whole = open_model(model).make_producer().log_probs(*pairs)[:, 0]
    np.testing.assert_allclose(values, [first + second, whole], rtol=1e-5)
    (tmp_path / "list").write_bytes(b"0 ||| t1 t2 t4 t1 ||| LM0= -1 ||| -1 ||| 0-2=0-3 \n")
    run(nbest.main, *options, "--allow-misfit", "--force", code=3)
    assert "expected phrases of at most 3 words" in capfd.readouterr().err
    run(nbest.main, *options, "--allow-misfit", "--force", "--long", "floor")
    assert b"CSTM0= -87" in (tmp_path / "new").read_bytes()
