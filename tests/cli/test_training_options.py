"""The file of settings of the commands that train: what it sets, what beats it, what it may not say."""

import json

import pytest

from tests.commands import run, settings
from tests.conftest import TINY


@pytest.fixture
def train(tmp_path, table):
    def call(*options, check=True):
        limits = "--preset", "small", "--max-epochs", "0.1", "--device", "cpu", "-q"
        done = run("train", table, "--model", "m", *TINY, *limits, *options, cwd=tmp_path, check=check)
        return done.stderr

    return call


def test_an_option_beats_the_file_and_the_file_the_preset(tmp_path, train):
    file = settings(tmp_path, optimizer="sgd", batch_size=32, averaging=0.25, hidden_size=3, cell="lstm")
    train(*file, "--batch-size", "16", "--optimizer", "adadelta")
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    training = config["provenance"]["training_options"]
    assert (config["hidden_size"], config["cell"]) == (8, "lstm")
    assert [training[name] for name in ("optimiser", "batch_size", "averaging", "cool_down")] == [
        "adadelta",
        16,
        0.25,
        0.5,
    ]
    message = train(
        *settings(tmp_path, optimiser="adadelta", averaging=0.5, cell="lstm"), "--batch-size", "16", check=False
    )
    assert "found others: averaging 0.25, now 0.5\n" in message


WRONG = {
    "batch_size: expected a whole number from 1 to 2147483647, found 0": {"batch_size": 0},
    "freeze_embeddings: expected true or false, found 'no'": {"freeze_embeddings": "no"},
    "format: expected one of moses, tsv, found 'csv'": {"format": "csv"},
    "expected each setting once, found two of format, layout": {"format": "tsv", "layout": "moses"},
    "leaky_share: expected null, because gru cells do not have it, found 0.5": {"leaky_share": 0.5},
    "cell: expected one of gru, tanh, relu, leaky, lstm, lstm-peephole, found ['gru']": {"cell": ["gru"]},
    "output_rank: expected a whole number from 1 to 16777216, found 0": {"output_rank": 0},
    "max_length: expected a whole number from 0 to 2147483647, found -1": {"max_length": -1},
    "reduction: expected one of pair-mean, token-mean, sum, found 'mean'": {"reduction": "mean"},
    "found optimizr: --architecture encdec has no such option\n  docs/training.md lists the settings.": {"optimizr": 1},
    "found peepholes: --architecture encdec has no such option\n  docs/training.md lists the settings.": {
        "peepholes": True
    },
    "found native: --architecture encdec has no such option\n  docs/training.md lists the settings.": {
        "native": "avx2"
    },
    "found target_vocabulary_size: --architecture encdec has no such option\n  docs/training.md lists the settings.": {
        "target_vocabulary_size": 9
    },
    "found force\n  Give it on the command line.": {"force": True},
}


@pytest.mark.parametrize(("message", "wrong"), WRONG.items(), ids=[str(wrong) for wrong in WRONG.values()])
def test_what_is_wrong_is_named_with_its_key(tmp_path, train, message, wrong):
    file = settings(tmp_path, **wrong)
    told = train(*file, check=False)
    assert told.startswith(f"moses-rnn-train: {file[1]}: ")
    assert told.endswith(f"{message}\n")
