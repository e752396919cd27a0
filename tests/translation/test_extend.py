"""A whole extension by small networks: proposals at their places, all columns filled, nothing half-written."""

import contextlib
import gzip
import math

import numpy as np
import pytest
import torch

from moses_rnn.errors import InputError, MisfitError
from moses_rnn.files.streams import show_nothing
from moses_rnn.models.model import Model
from moses_rnn.models.open import open_model, save_model
from moses_rnn.networks.compute import Compute
from moses_rnn.networks.cstm import CSTM, Cstm, CstmConfig
from moses_rnn.networks.ranker import RANKER, Ranker, RankerConfig
from moses_rnn.networks.vocabulary import END, UNKNOWN
from moses_rnn.table.phrase_table import parse_table
from moses_rnn.table.phrases import words
from moses_rnn.table.signatures import Signature
from moses_rnn.table.table_blocks import Pairs
from moses_rnn.translation.extend import INVERSE, LOWEST, NETWORK, extend
from moses_rnn.translation.requests import ExtensionRequest
from tests.models.pairs import SOURCE, TARGET
from tests.networks.checkpoints import encdec_checkpoint
from tests.networks.networks import made
from tests.translation.writers import writer

TABLE = [
    b"s2 s3 ||| t2 ||| 0.5 0.4 0.5 0.3 ||| 0-0 1-0 ||| 2 2 1 ||| |||\n",
    b"s2 s3 ||| t3 t4 ||| 0.5 0.4 0.5 0.3 ||| 0-0 1-1 ||| 2 2 1 ||| |||\n",
    b"s2 ||| t2 ||| 0.8 0.7 0.6 0.5 ||| 0-0 ||| 5 6 4 ||| |||\n",
    b"s4 ||| t3 ||| 0.25 0.7 0.6 0.5 ||| 0-0 ||| 5 6 4 ||| |||\n",
    b"zork ||| t9 ||| 1 1 1 1 ||| 0-0 ||| 1 1 1 ||| |||\n",
]
TEXT = b"s2 s3 s4 zork s3\ns2 s2\n"
LACKING = {b"s3", b"s3 s4", b"s2 s3 s4", b"s2 s2"}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A network that writes, and others of the other direction: one that writes, two with slots for few words."""
    folder = tmp_path_factory.mktemp("models")
    network = writer().to(torch.float32)
    save_model(folder / "rnn", encdec_checkpoint(network, SOURCE, TARGET))
    save_model(
        folder / "inverse",
        encdec_checkpoint(writer(end=2.0).to(torch.float32), TARGET_LIKE, SOURCE_LIKE, "target-to-source"),
    )
    sizes = {"embedding_size": 3, "slots": 2}
    ranker = made(Ranker, RankerConfig(9, 8, hidden_size=6, **sizes), torch.float32, 20)
    cstm = made(Cstm, CstmConfig(9, 8, first_size=6, second_size=5, **sizes), torch.float32)
    vocabularies = {"source": TARGET_LIKE, "target": SOURCE_LIKE}
    for name, kind, network in (("ranker", RANKER, ranker), ("cstm", CSTM, cstm)):
        save_model(folder / name, Model(kind, network, vocabularies, "target-to-source"))
    return folder


# What an inverse network reads are targets; its sizes are those of the other one
TARGET_LIKE = type(SOURCE)([UNKNOWN, END, *(b"t%d" % i for i in range(2, 9))])
SOURCE_LIKE = type(SOURCE)([UNKNOWN, END, *(b"s%d" % i for i in range(2, 8))])


@pytest.fixture
def here(tmp_path):
    (tmp_path / "table").write_bytes(b"".join(TABLE))
    (tmp_path / "text").write_bytes(TEXT)
    return tmp_path


def extended(here, models, *, inverse=None, signature=None, output="new.gz", stage=None, longest=7):
    """What comes of the table, and the lines of the new one."""
    request = ExtensionRequest(
        phrase_table=str(here / "table"),
        text=str(here / "text"),
        model=models / "rnn",
        output=str(here / output),
        longest=longest,
        min_log_prob=-1e9,
        device="cpu",
    )
    opened = [open_model(models / name) for name in ("rnn", inverse) if name]
    found = extend(
        request, opened, Signature(signature or {}), stage or (lambda unit: contextlib.nullcontext(show_nothing))
    )
    with gzip.open(here / output) as lines:
        return found, list(lines)


def new_lines(lines):
    return list(parse_table([line for line in lines if line not in TABLE], "new"))


def pairs_of(lines):
    return {(line.source, line.target) for line in lines}


def test_what_a_text_needs(here, models):
    result, lines = extended(here, models, longest=3)
    new = new_lines(lines)
    assert lines == sorted(lines)
    assert [line for line in lines if line in TABLE] == TABLE
    assert {line.source for line in new} == LACKING
    assert not pairs_of(new) & pairs_of(parse_table(TABLE, "t"))
    assert len(pairs_of(new)) == len(new) == result.counts.lines
    assert all(word.startswith(b"t") and word != b"t9" for line in new for word in words(line.target))
    assert (result.counts.lacking, result.text_words, result.unknown_words) == (4, 4, 1)
    assert result.lines == len(lines)
    short, _ = extended(here, models, longest=1, output="short.gz")
    assert short.counts.lacking == 1


def test_networks_say_what_their_scorers_say(here, models):
    _, lines = extended(here, models, inverse="inverse")
    new = new_lines(lines)
    for name, column in (("inverse", 0), ("rnn", 2)):
        scorer = open_model(models / name).make_scorer(Compute(precision="fp64"))
        expected = scorer.log_probs(Pairs.of((line.source, line.target) for line in new))
        values = [math.log(float(words(line.scores)[column])) for line in new]
        np.testing.assert_allclose(values, expected, atol=1e-4)


def test_a_ranker_fills_its_own_column_only(here, models):
    """Its score is no log p(source | target), and may be above 0."""
    column = {"index": 3, "name": "RANKInverse", "unbounded": True, "meaning": None}
    signature = {"added_columns": [column], "models": [{"sha256": dict(open_model(models / "ranker").hashes)}]}
    alone, lines = extended(here, models, inverse="ranker", output="lexical.gz")
    assert alone.fills[0] != INVERSE
    assert alone.fills[0] == extended(here, models, output="none.gz")[0].fills[0]
    _, lines = extended(here, models, inverse="ranker", signature=signature)
    new = new_lines(lines)
    scorer = open_model(models / "ranker").make_scorer(Compute(precision="fp64", floors_long=True))
    expected = scorer.log_probs(Pairs.of((line.source, line.target) for line in new))
    assert expected.max() > 1
    values = [math.log(float(words(line.scores)[3])) for line in new]
    np.testing.assert_allclose(values, np.clip(expected, -87, 87), atol=1e-4)


def test_targets_that_are_too_long_for_an_inverse_network_get_the_floor(here, models):
    _, lines = extended(here, models, inverse="cstm")
    new = new_lines(lines)
    lowest = [float(words(line.scores)[0]) < 1e-37 for line in new]
    long = [len(words(line.target)) > 2 or len(words(line.source)) > 2 for line in new]
    assert any(lowest)
    assert lowest == long


def signed(*columns, config=None, meaning=None):
    """A signature that has such columns of this network, or of one with another config."""
    record = {"name": "RNN", "meaning": meaning}
    return {"added_columns": [{"index": i, **record} for i in columns], "models": [{"sha256": config}]}


def test_a_column_of_another_network_is_not_filled_by_this_one(here, models):
    own = dict(open_model(models / "rnn").hashes)
    expected = "rnn: expected the model that gave score {} of .*table according to the signature .*, found {}"
    numbered = signed(2, 3, config=own)
    numbered["added_columns"][1]["name"] = "RNN1"
    wrong = [
        (signed(3, config={"config": "other"}), expected.format(4, "another")),
        (
            signed(3, config=own, meaning="mean of 2 models' log p"),
            "expected the network of score 4, RNN, to fill it in new lines, found a mean of several\n  Extend the table",
        ),
        (signed(2, 3, config=own), expected.format(3, "several scores named RNN")),
        (numbered, expected.format(3, "several scores named RNN.*\n  Extend the table before you score it")),
    ]
    for signature, message in wrong:
        with pytest.raises(MisfitError, match=message):
            extended(here, models, signature=signature)
    result, _ = extended(here, models, signature=signed(3, config=own))
    assert result.fills == [LOWEST, LOWEST, LOWEST, NETWORK]


def test_a_second_run_extends_no_further(here, models):
    extended(here, models)
    (here / "table").write_bytes(gzip.decompress((here / "new.gz").read_bytes()))
    result, lines = extended(here, models, output="twice.gz")
    assert (result.counts.lacking, result.counts.lines) == (0, 0)
    assert b"".join(lines) == (here / "table").read_bytes()


def test_a_table_that_changes_meanwhile_is_refused(here, models):
    def stage(unit):
        if unit == "lines":  # which are written
            (here / "table").write_bytes(b"".join(TABLE[1:]))
        return contextlib.nullcontext(show_nothing)

    with pytest.raises(InputError, match="table: was changed while it was read; nothing was written"):
        extended(here, models, stage=stage)
    assert not (here / "new.gz").exists()
