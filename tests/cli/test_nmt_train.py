"""moses-rnn-nmt train: what it makes, what it says, what it refuses."""

import pytest

from moses_rnn.cli.nmt_train import train
from moses_rnn.producers.open import open_model
from tests.commands import settings
from tests.training.sentences import write_texts

TINY = ("--hidden-size", 8, "--embedding-size", 8, "--threads", 1)
TEXTS = ("--source", "src", "--target", "trg")


def run(*arguments):
    """The exit code."""
    with pytest.raises(SystemExit) as leaving:
        train.main([str(argument) for argument in arguments], prog_name="moses-rnn-nmt train")
    return leaving.value.code or 0


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_texts(tmp_path, "train", 200)
    write_texts(tmp_path, "dev", 20, seed=1)
    return tmp_path


def test_trains_and_says_what_it_does(here, capfd):
    assert run("train", *TEXTS, "--dev", "dev", "--model", "m", *TINY, "--max-epochs", 2) == 0
    out, messages = capfd.readouterr()
    assert not out
    for text in (
        "texts: 200 pairs, ",
        "training pairs: 200; held out: 20, a text of its own",
        "network: RNNsearch, phases of paper, H 8, ",
        "     pairs  epochs      time  held-out nats  perplexity  clipped  tokens/s\n",
        "\n       200    1.00   0:00:0",
        "finished: 2 epochs are done; best held-out ",
        "\nnext: moses-rnn-nmt translate m dev.src\n",
    ):
        assert text in messages
    assert open_model(here / "m").name == "SEARCH"


def test_goes_on_with_a_run_that_has_more_to_do(here, capfd):
    for epochs in (1, 2):
        assert run("train", *TEXTS, "--model", "m", *TINY, "--max-epochs", epochs) == 0
    assert "resuming after " in capfd.readouterr().err


def test_trains_seq2seq_by_any_schedule(here, capfd):
    switches = settings(here, layers=2, source_order="forward", peepholes=False, schedule="half-epochs")
    line = ["train", *TEXTS, "--model", "m", "--architecture", "seq2seq", *TINY, *switches, "--max-epochs", 1]
    assert run(*line, "--optimizer", "sgd") == 0
    messages = capfd.readouterr().err
    assert "network: deep LSTM, 2 layers, source forward, H 8" in messages
    assert "sgd, learning rate 0.7, schedule half-epochs, " in messages
    assert open_model(here / "m").name == "LSTM"


def test_help_has_an_example_and_the_presets(capfd):
    assert run("--help") == 0
    out = " ".join(capfd.readouterr().out.split())
    assert "moses-rnn-nmt train corpus/train --source en --target fr" in out
    assert "rnnsearch, small H 256, E 128, A 256, M 128" in out
    assert "seq2seq, paper L 4, H 1000, E 1000; 160,000 and 80,000 words; sgd, 128 a minibatch" in out


def test_large_shortlists_are_learned_in_partitions(here, capfd):
    line = ["train", *TEXTS, "--dev", "dev", "--model", "m", *TINY, "--max-epochs", 1, "--batch-size", 1]
    assert run(*line, *settings(here, partition_words=12, reshuffle=True)) == 0
    messages = capfd.readouterr().err
    assert "partitions of the first epoch: " in messages
    assert "partitions of 12 words, reshuffled" in messages
    assert run(*line[:-6], "--model", "n", *settings(here, partition_words=4)) == 3
    assert "partition_words 4: expected at least " in capfd.readouterr().err


def test_rare_words_are_annotated(here, capfd):
    (here / "train.links").write_text("0-0\n" * 200)
    line = ["train", *TEXTS, "--model", "m", *TINY, "--max-epochs", 1]
    assert run(*line, "--rare", "posunk") == 2
    assert "--rare: posunk needs --alignment" in capfd.readouterr().err
    assert run(*line, "--rare", "posunk", "--alignment", "train.links", "--source-words", 5, "--target-words", 5) == 0
    assert open_model(here / "m").rare.kind == "posunk"
