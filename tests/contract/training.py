"""How the trainings of the rows are run: one language for all of them, as a table, as parallel texts and as a text."""

import os
import signal
from collections import Counter
from pathlib import Path

import numpy as np
import torch._dynamo  # noqa: F401, an optimiser imports it when it is made; forks have it then
from sentencepiece import SentencePieceProcessor

from moses_rnn.networks.subwords import learn_subwords
from moses_rnn.networks.vocabulary import Vocabulary
from moses_rnn.training import train as trainings
from tests.contract.rows import ROWS
from tests.training.small import Listener, never, phrase_options, sentence_options, text_options

TRAININGS = [(key, training) for key, row in ROWS.items() for training in row.trainings]
# three epochs of a few steps, with all that a run must remember
COURSE = {
    "max_epochs": 3,
    "batch_size": 16,
    "learning_rate": 0.02,
    "averaging": 0.2,
    "dropout": 0.2,
    "cool_down": 0.5,
    "evaluate_every": 40,
    "patience": 99,
}
SIZES = dict.fromkeys(("hidden_size", "embedding_size", "maxout_size", "output_rank"))
SLOTTED = {**SIZES, "embedding_size": 4, "max_length": 0}  # of a network that has not the sizes of an RNN


def write_material(folder):
    """Word t3 translates s3; a text is of targets alone."""
    random = np.random.default_rng(0)
    words = [random.integers(6, size=random.integers(1, 5)) for _ in range(90)]
    sides = {letter: [b" ".join(b"%c%d" % (letter, i) for i in ids) for ids in words] for letter in b"st"}
    pairs = zip(*sides.values(), strict=True)
    (folder / "table").write_bytes(b"".join(b"%b ||| %b ||| 0.5\n" % pair for pair in pairs))
    for letter, name in zip(b"st", ("src", "trg"), strict=True):
        (folder / f"train.{name}").write_bytes(b"".join(line + b"\n" for line in sides[letter]))
        (folder / f"dev.{name}").write_bytes(b"".join(line + b"\n" for line in sides[letter][:9]))


def options_of(training, folder, model, **changes):
    options = {**COURSE, **training.options, **changes}
    if training.material == "table":
        slotted = SLOTTED if options.get("architecture") in ("cstm", "ranker") else {}
        return phrase_options(folder / "table", model=model, **{"held_out": 9, **slotted, **options})
    if training.material == "sentences":
        dev = {"dev": str(folder / "dev"), "hidden_size": 6}
        return sentence_options(folder / "train", model=model, **{**dev, **options})
    return text_options(folder / "train.trg", model, **{"dev": str(folder / "dev.trg"), **options})


def train(training, folder, model, stop=never, listener=None, **changes):
    options = options_of(training, folder, model, **changes)
    return trainings.train(**options, observer=listener or Listener(), should_stop=stop)


def after(steps):
    """What stops a run after some steps, or some blocks that it reads."""
    left = iter(range(steps))
    return lambda: next(left, None) is None


def train_until_killed(training, folder, model, renames):
    """Train, until about to rename a file for the n-th time: then the process is gone, as by kill -9."""
    left, replace = iter(range(renames)), Path.replace

    def die(path, target):
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        return replace(path, target)

    Path.replace = die
    train(training, folder, model, never)


def lines_of(text, subwords=None):
    """The words of its lines as ids of what a training makes of train.trg.

    That is a shortlist, by frequency, then by bytes, or as many subwords, each word cut by sentencepiece itself.
    """
    counts = Counter((text.parent / "train.trg").read_bytes().split())
    if subwords:
        encode = SentencePieceProcessor(model_proto=learn_subwords(counts, subwords).model).encode
        return [[i for word in line.split() for i in encode(word)] for line in text.read_text().splitlines()]
    known = Vocabulary([b"<unk>", b"</s>", *sorted(counts, key=lambda word: (-counts[word], word))])
    return [known.ids(line.split()) for line in text.read_bytes().splitlines()]
